"""Cut evidence to what the answer may read (SPEC T4)."""

from __future__ import annotations

from core.language.tokens import estimate_tokens
from core.settings import Settings
from core.types import Evidence
from retrievers.types import Searched


def token_budget(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the longest beginning of the ranking that fits the budget, at least the first."""
    budget = context_budget(searched.index.settings)
    used = 0
    for place, item in enumerate(evidence):
        used += estimate_tokens(item.text)
        if place and used > budget:
            return evidence[:place], f"{len(evidence) - place} beyond {budget} tokens dropped"
    return evidence, ""


def context_budget(settings: Settings) -> int:
    """Return the tokens evidence may fill: `context_tokens`, within a share of the window."""
    if not settings.context_window:
        return settings.context_tokens
    share = int(settings.context_share * settings.context_window)
    return min(settings.context_tokens, share)
