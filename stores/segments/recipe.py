"""What a segment depends on besides the truth: the model and the settings of BM25."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings import Settings

TITLE_WEIGHT = 3.0  # BM25 weights of the columns beside the text, which has 1
KEYWORDS_WEIGHT = 2.0
SECTION_WEIGHT = 2.0
BM25_K1 = 1.5  # how soon repeated words stop to count: the usual value
BM25_B = 0.75  # how much long chunks are marked down: the usual value


@dataclass(frozen=True)
class Columns:
    """Say how often the terms of title, keywords and section count beside the body's once."""

    title: int
    keywords: int
    section: int

    def terms(self, title: str, keywords: str, section: str, body: str) -> list[str]:
        """Return all terms of a row, repeated by the weight of their column."""
        repeated = (
            title.split() * self.title
            + keywords.split() * self.keywords
            + section.split() * self.section
        )
        return repeated + body.split()


@dataclass(frozen=True)
class Recipe:
    """Hold everything a segment depends on besides the truth."""

    model: str
    k1: float
    b: float
    columns: Columns

    def settings(self) -> dict[str, float]:
        """Return what a manifest says of it."""
        columns = self.columns
        return {
            "k1": self.k1,
            "b": self.b,
            "title": columns.title,
            "keywords": columns.keywords,
            "section": columns.section,
        }

    @classmethod
    def of(cls, model: str, settings: Settings) -> Recipe:
        """Return the recipe of a model's vectors under these settings."""
        columns = Columns(
            title=round(TITLE_WEIGHT),
            keywords=round(KEYWORDS_WEIGHT),
            section=round(SECTION_WEIGHT),
        )
        return cls(model, BM25_K1, BM25_B, columns)
