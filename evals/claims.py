"""Judge labelled claims by the verifier, and count how often it is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import Any

from core.errors import CallerError
from core.settings import Settings
from evals.dataset import read_objects
from models.loading import open_embedder
from reasoning.rules.reasoner import RulesReasoner
from reasoning.verification import judge

SHAPE = '{"claim": "…", "evidence": ["…"], "supported": true, "kind": "…"}'
NO_KIND = "unknown"


@dataclass(frozen=True)
class LabelledClaim:
    """Hold a claim with its evidence, and whether that supports it; `kind` is what is wrong."""

    place: str
    claim: str
    evidence: tuple[str, ...]
    supported: bool
    kind: str


@dataclass(frozen=True)
class JudgedClaim:
    """Hold a claim with the reason for which it is rejected, "" where it is accepted."""

    labelled: LabelledClaim
    reason: str

    @property
    def is_right(self) -> bool:
        """Tell whether the verifier and the label agree."""
        return self.labelled.supported == (not self.reason)


def read_claims(path: Path) -> Iterator[LabelledClaim]:
    """Read labelled claims of JSON Lines; raise CallerError for a line that is none."""
    if not path.is_file():
        raise CallerError(
            "the claims must be a file of JSON Lines", value=str(path), hint=f"a line is {SHAPE}"
        )
    place = ""
    for place, found in read_objects(path, SHAPE):
        yield _labelled(place, found)
    if not place:
        raise CallerError("the file has no claim", value=str(path), hint=f"a line is {SHAPE}")


def _labelled(place: str, found: dict[str, Any]) -> LabelledClaim:
    claim, evidence, supported = (found.get(key) for key in ("claim", "evidence", "supported"))
    evidence = [evidence] if isinstance(evidence, str) else evidence
    kind = found.get("kind")
    rules = (
        (isinstance(claim, str) and claim.strip(), "'claim' must be a text", claim),
        (
            isinstance(evidence, list) and all(isinstance(one, str) for one in evidence),
            "'evidence' must be a list of texts",
            evidence,
        ),
        (isinstance(supported, bool), "'supported' must be true or false", supported),
        (kind is None or isinstance(kind, str), "'kind' must be a text", kind),
    )
    for holds, rule, value in rules:
        if not holds:
            raise CallerError(f"{place}: {rule}", value=repr(value), hint=f"a line is {SHAPE}")
    assert isinstance(claim, str) and isinstance(evidence, list) and isinstance(supported, bool)
    return LabelledClaim(place, claim, tuple(evidence), supported, kind or NO_KIND)


def judge_claims(claims: Iterator[LabelledClaim], settings: Settings) -> list[JudgedClaim]:
    """Judge each claim as the answers that the rules write are judged."""
    reasoner = cached(lambda: RulesReasoner(settings, lambda terms: {}, open_embedder(settings)))
    # Most claims are judged without the embedder, which is opened when it is asked.
    return [
        JudgedClaim(
            one, judge(one.claim, one.evidence, supports=lambda *given: reasoner().supports(*given))
        )
        for one in claims
    ]


def summarise_claims(judged: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Count the supported claims that are accepted, and by kind the others that are caught."""
    supported = [one for one in judged if one.labelled.supported]
    kinds: dict[str, dict[str, int]] = {}
    for one in judged:
        if not one.labelled.supported:
            counts = kinds.setdefault(one.labelled.kind, {"n": 0, "caught": 0})
            counts["n"] += 1
            counts["caught"] += bool(one.reason)
    return {
        "supported": {
            "n": len(supported),
            "accepted": sum(not one.reason for one in supported),
        },
        "by_kind": dict(sorted(kinds.items())),
    }
