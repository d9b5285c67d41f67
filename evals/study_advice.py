"""What the figures of a collection advise for its settings, measured in docs/evals/techdocs.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.profile import Profile
from core.settings import Settings
from core.types import FrozenModel
from evals.study import WHOLE, Study

CODE_SHARE = 0.05  # of the characters, from which documents count as technical; chosen
SMALLEST = 4000  # characters of a section that always stays whole: 2,000 found less
LARGEST = 200_000
OVERLAP = 10  # a chunk repeats so many hundredths of its size: 30 found no page more
WEIGHTS = {"title": 0.1, "opening": 0.15}


class Advice(FrozenModel):
    """Name a setting whose value the figures speak against, what they advise, and why."""

    setting: str
    now: Any
    advised: Any
    why: str


def advise(study: Study, settings: Settings) -> list[Advice]:
    """Return what is advised and not set yet; nothing where nothing was measured to help."""
    technical = _of_technical(study, settings) if study.code_share >= CODE_SHARE else ()
    return [one for one in (*technical, *_of_any(settings)) if one.now != one.advised]


def advised_profile(profile: Profile, advice: Sequence[Advice]) -> Profile:
    """Return the profile of a collection with the advice in its settings."""
    given = {one.setting: one.advised for one in advice}
    return profile.model_copy(update={"settings": {**profile.settings, **given}})


def _of_technical(study: Study, settings: Settings) -> Iterator[Advice]:
    """Keep sections whole with their code, and prefer titles and beginnings of pages.

    The size of a chunk then follows the sections of its type; what is set is the longest.
    """
    now = settings.ingest
    code = f"{study.code_share:.0%} of the characters are code"
    yield Advice(
        setting="ingest.chunker",
        now=now.chunker,
        advised="structural",
        why=f"{code}: a sample stays with the text around it, and nothing is repeated",
    )
    longest = max(one.section for one in study.types.values())
    needed = min(LARGEST, max(now.structural_max, SMALLEST, -(-longest // 1000) * 1000))
    by_type = ", ".join(f"{kind} {one.section:,}" for kind, one in study.types.items())
    yield Advice(
        setting="ingest.structural_max",
        now=now.structural_max,
        advised=needed,
        why=f"{WHOLE:.0%} of the sections have at most so many characters: {by_type}",
    )
    given = settings.selection.factor_amounts
    named = {one.partition("=")[0] for one in given}
    yield Advice(
        setting="selection.factor_amounts",
        now=given,
        advised=[*given, *(f"{name}={n}" for name, n in WEIGHTS.items() if name not in named)],
        why=f"{code}: the page that a question is about says so in its title and its beginning",
    )


def _of_any(settings: Settings) -> Iterator[Advice]:
    now = settings.ingest
    yield Advice(
        setting="ingest.chunk_overlap",
        now=now.chunk_overlap,
        advised=min(now.chunk_overlap, now.chunk_size * OVERLAP // 100),
        why=f"more than {OVERLAP} % of a chunk finds no page more",
    )
