"""What the figures of a collection advise for its settings; docs/evals/techdocs.md has the proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.profile import Profile
from core.settings import Settings
from core.types import FrozenModel
from evals.study import Study

CODE_SHARE = 0.05  # of the characters, from which a collection is technical documentation
WEIGHTS = {"title": 0.1, "opening": 0.15}  # of the profile techdocs, measured


class Advice(FrozenModel):
    """Name a setting whose value the figures speak against, what they advise, and why."""

    setting: str
    now: Any
    advised: Any
    why: str


def advise(study: Study, settings: Settings) -> list[Advice]:
    """Return what is advised and not set yet, the settings of the next ingest first."""
    return [one for one in _advised(study, settings) if one.now != one.advised]


def advised_profile(profile: Profile, advice: Sequence[Advice]) -> Profile:
    """Return the profile of a collection with the advice in its settings."""
    given = {one.setting: one.advised for one in advice}
    return profile.model_copy(update={"settings": {**profile.settings, **given}})


def _advised(study: Study, settings: Settings) -> Iterator[Advice]:
    if study.code_share < CODE_SHARE:
        return
    amounts = settings.selection.amounts | WEIGHTS
    given = [f"{name}={amount:g}" for name, amount in amounts.items()]
    yield Advice(
        setting="selection.factor_amounts",
        now=settings.selection.factor_amounts,
        advised=given,
        why="x",
    )
