"""What an exam has shown: kept by the model's digest, and which decisions are the model's by it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError

from core.fields.chat import DECISIONS, NULL
from core.settings import Settings
from core.types import FrozenModel
from models.chat.types import Capabilities

ITEMS_FILE = Path(__file__).with_name("exam.yaml")
FOLDER = "exams"
# Chosen, not measured:
LEAST_SHARE = 0.5  # of the items of a decision; an exam that was stopped says little on fewer
# More right than the rules, and right at least so often: of eight items one more says nothing, and
# a model of 1.5 billion weights "won" rewriting with 1 of 8 to 0.
LEAST_GAIN, LEAST_RIGHT = 2, 0.5


class ItemResult(FrozenModel):
    """Hold what came of one item: whether model and rules were right, and what the model took."""

    decision: str
    right: bool
    rules: bool
    tokens: int = 0
    seconds: float = 0.0


class DecisionResult(FrozenModel):
    """Sum up the items of one decision; `tokens` and `seconds` are means of the model's."""

    items: int
    of: int
    right: int
    rules: int
    tokens: float
    seconds: float
    chosen: bool


class ExamResult(FrozenModel):
    """Hold the exam of a model at a server, as far as it has come."""

    digest: str
    model: str
    url: str
    version: str
    of: dict[str, int]
    items: list[ItemResult] = Field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Tell whether every item was tried."""
        return len(self.items) >= sum(self.of.values())

    def decisions(self, seconds: float) -> dict[str, DecisionResult]:
        """Return the figures of each decision, and which are the model's.

        A decision is the model's where it was right in two items more than the rules and in half of
        them, of at least half of all, and where all such together end within `seconds`; the answer
        comes first, and is the model's as long as too few of its items were tried.
        """
        found: dict[str, DecisionResult] = {}
        left = seconds
        for name in ("answer", *(one for one in DECISIONS if one != "answer")):
            own = [one for one in self.items if one.decision == name]
            n, of = len(own), self.of.get(name, 0)
            right, rules = (sum(getattr(one, who) for one in own) for who in ("right", "rules"))
            took = sum(one.seconds for one in own) / n if n else 0.0
            better = right >= rules + LEAST_GAIN and right >= LEAST_RIGHT * n
            tried = n >= LEAST_SHARE * of
            chosen = better and took <= left if tried else name == "answer"
            left -= took if chosen else 0.0
            found[name] = DecisionResult(
                items=n,
                of=of,
                right=right,
                rules=rules,
                tokens=round(sum(one.tokens for one in own) / n, 1) if n else 0.0,
                seconds=round(took, 2),
                chosen=chosen,
            )
        return found


def items_version() -> str:
    """Return what identifies the items: other items make another exam."""
    return hashlib.sha256(ITEMS_FILE.read_bytes()).hexdigest()[:12]


def result_path(settings: Settings, digest: str) -> Path:
    """Return where the exam of a model is kept."""
    return settings.cache.expanduser() / FOLDER / f"{digest}.json"


def kept_result(settings: Settings, digest: str) -> ExamResult | None:
    """Return the kept exam of a model; None without one, or where the items have changed."""
    with suppress(OSError, ValidationError):
        found = ExamResult.model_validate_json(result_path(settings, digest).read_bytes())
        if found.version == items_version():
            return found
    return None


def keep_result(settings: Settings, result: ExamResult) -> None:
    """Write an exam in one step."""
    path = result_path(settings, result.digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(result.model_dump_json(), encoding="utf-8")
    new.replace(path)


def examined_before(settings: Settings, url: str, digest: str) -> str:
    """Return the name of another model that was examined at the same address, "" for none."""
    folder = settings.cache.expanduser() / FOLDER
    for path in sorted(folder.glob("*.json")):
        found = kept_result(settings, path.stem)
        if found is not None and found.url == url and found.digest != digest:
            return found.model
    return ""


def place_of(settings: Settings, capabilities: Capabilities) -> str:
    """Return the address or the file that a model is reached at."""
    other = {"in-process": settings.llm.file, "provider": settings.llm.provider}
    return other.get(capabilities.kind, settings.llm.url)


def decided_by_model(settings: Settings, capabilities: Capabilities) -> tuple[frozenset[str], str]:
    """Return the decisions that an exam leaves to a model, and what a caller should know.

    Before an exam that is the answer alone.
    """
    found = kept_result(settings, capabilities.digest)
    if found is None or not found.items:
        place = place_of(settings, capabilities)
        other = examined_before(settings, place, capabilities.digest)
        void = f"the exam of {other} does not hold for {capabilities.model}, which is served now"
        return frozenset({"answer"}), f"{void}; run `carrel llm exam`" if other else ""
    chosen = found.decisions(settings.llm.answer_by_seconds)
    decided = {name for name, one in chosen.items() if one.chosen}
    # An exam that has tried too little leaves the answer to a model, but not that nothing answers.
    answer = chosen["answer"]
    shown = answer.chosen and answer.items >= LEAST_SHARE * answer.of
    return frozenset(decided | ({NULL} if shown else set())), ""
