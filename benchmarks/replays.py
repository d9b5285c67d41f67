"""Replay every run of many questions, and measure how far runs go beyond their budgets.

python -m benchmarks.replays DIRECTORY QUESTIONS.jsonl [--seed 7]: each line of the
file has a collection of the data directory and a question. Each question is asked by the rules, by
a stub of a model (benchmarks/stub_model.py), in a conversation with a follow-up, and within small
random limits. A run is replayed from its record, and with tools and rules asked anew. Nothing stays
in the directory: it is copied.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.session import Session
from benchmarks import stub_model
from cli.options import flags_from
from core.auth import AuthContext
from core.budget import Budget
from core.settings import load_settings
from core.trace import RunRecord
from graph.build import build_graph
from graph.context import Context
from graph.recording import Recording
from graph.replay import replay_run

AUTH = AuthContext(tenant="default", user="replays")
FOLLOW_UP = {"en": "What else is said about it?", "ru": "Что ещё об этом сказано?",
             "uk": "Що ще про це сказано?", "zh": "关于它还说了什么？"}  # fmt: skip
# Ranges of random limits; prices are such that a limit of cost is met as well.
LIMITS = {
    "steps": (1, 24), "tool_calls": (0, 5), "tokens": (0, 6000), "seconds": (0.02, 2.0),
    "cost": (0.0, 0.02),
}  # fmt: skip
PRICES = {"llm.price_prompt": 3.0, "llm.price_completion": 15.0}
QUICK = {"FIRST_SECONDS": 0.01, "READ_PER_SECOND": 400_000, "PER_SECOND": 4_000}


class Measured:
    """Hold by kind of run how many were replayed the same, and by limit how far runs went."""

    def __init__(self) -> None:
        self.runs: dict[str, int] = defaultdict(int)
        self.same: dict[str, int] = defaultdict(int)
        self.same_anew: dict[str, int] = defaultdict(int)
        self.over: dict[str, list[float]] = defaultdict(list)
        self.sizes: list[tuple[int, int]] = []
        self.different: list[str] = []
        self.graph = build_graph()

    def take(self, session: Session, kind: str, run: RunRecord) -> None:
        """Replay a run that was asked just now."""
        kept = session.runs.load(AUTH, run.run_id)

        def live(recording: Recording) -> Context:
            return session.context(AUTH, kept.collection, clarify=recording.clarify)

        found = replay_run(self.graph, kept)
        self.runs[kind] += 1
        self.same[kind] += found.identical and not found.notes
        if "model" not in kind and "limits" not in kind:  # else a clock or a server decides
            anew = replay_run(self.graph, kept, live, tools=True, model=True)
            self.same_anew[kind] += anew.identical
            found = found if not found.identical else anew
        self.different += [
            f"{kind}: {run.question}: {one._replace(recorded='', now='')}"
            for one in found.differences[:1]
        ]
        trail = json.dumps([step.model_dump() for step in kept.trail], ensure_ascii=False)
        size = len((json.dumps(kept.result, ensure_ascii=False) + trail).encode())
        self.sizes.append((size, len(kept.recording["data"])))

    def weigh(self, run: RunRecord, budget: Budget) -> None:
        """Compare what a run spent with its limits."""
        usage = run.result["usage"]
        for name in LIMITS:
            spent = usage["ms"] / 1000 if name == "seconds" else usage[name]
            self.over[name].append(spent - getattr(budget, name))

    def report(self) -> dict[str, Any]:
        """Return what was measured; an overrun of 0 or less is none."""
        before, recording = (sum(column) for column in zip(*self.sizes, strict=True))
        return {
            "runs": sum(self.runs.values()),
            "identical": sum(self.same.values()),
            "by_kind": {name: [self.same[name], n] for name, n in self.runs.items()},
            "anew": {name: [n, self.runs[name]] for name, n in self.same_anew.items()},
            "different": self.different[:20],
            "bytes": [round(one / len(self.sizes)) for one in (before, recording)],
            "overrun_p100": {name: [max(of), len(of)] for name, of in self.over.items()},
        }


def limits_of(draw: random.Random) -> dict[str, float]:
    """Return limits of which some are small, the others as the settings have them."""
    chosen = draw.sample(sorted(LIMITS), draw.randint(1, len(LIMITS)))
    return {
        f"budget.{name}": draw.randint(*map(int, LIMITS[name]))
        if name in ("steps", "tool_calls", "tokens")
        else draw.uniform(*LIMITS[name])
        for name in chosen
    }


def ask_all(
    session: Session, rows: Sequence[dict[str, str]], model: str, draw: random.Random
) -> Iterator[tuple[str, RunRecord, Budget]]:
    """Ask each question alone and within limits; without a model also in a conversation."""
    given = session.settings
    for row in rows:
        name, question = row["collection"], row["question"]
        session.settings = given
        yield f"alone{model}", session.ask(question, AUTH, name), given.run_budget()
        session.settings = given.model_copy(update=limits_of(draw))
        run = session.ask(question, AUTH, name)
        yield f"limits{model}", run, session.settings.run_budget()
        if model:
            continue
        session.settings = given
        talk = session.runs.create_conversation(AUTH.tenant, AUTH.user, name).id
        language = "und"
        for text in (question, FOLLOW_UP.get(language, FOLLOW_UP["en"])):
            run = session.ask(text, AUTH, "", conversation=talk, clarify=True)
            language = (run.trail[0].arguments or {}).get("language", "en")
            yield "conversation", run, given.run_budget()


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
    draw = random.Random(given.seed)
    measured = Measured()
    vars(stub_model).update(QUICK)
    with tempfile.TemporaryDirectory() as folder, stub_model.stub_model() as served:
        data = Path(folder) / "data"
        shutil.copytree(given.directory, data)
        for model, flags in (("", ["reasoner=rules"]), (" model", served)):
            settings, _ = load_settings(flags_from(data, [*flags, *given.set]) | PRICES)
            with Session(settings) as session:
                session.ask("What is this?", AUTH, rows[0]["collection"])  # loads its models
                for kind, run, budget in ask_all(session, rows, model, draw):
                    measured.take(session, kind, run)
                    measured.weigh(run, budget)
    print(json.dumps(measured.report(), ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
