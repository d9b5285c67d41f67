"""Settings: say what makes a library catalogue, and what a report on its quality finds unusual."""

from __future__ import annotations

from pydantic import BaseModel, Field


class LibraryFields(BaseModel):
    """Say what makes a library catalogue, and what `carrel quality` finds unusual in it."""

    min_text_words: int = Field(
        0, ge=0, description="Leave out full texts with fewer words (library profile: 200)."
    )
    drop_links: bool = Field(
        False,
        description="Take hyperlinks and marks of formatting out of texts and annotations (library"
        " profile: on).",
    )
    drop_repeats: bool = Field(
        False,
        description="Find a repeated annotation or passage of a collection only once, in the first"
        " document that the caller may see (library profile: on).",
    )
    book_links: bool = Field(
        False, description="Link full texts to the records of their books (library profile: on)."
    )
    classic_books: bool = Field(
        True, description="Let the record and the full texts of a book vote as one (classic)."
    )
    annotation_chars: int = Field(
        900, ge=1, description="Characters that an annotation usually has."
    )
    annotation_spread: float = Field(
        3.0,
        ge=1,
        description="An annotation this many times shorter or longer than usual is unusual.",
    )
    long_sentence: int = Field(
        1000, ge=50, description="Characters without the end of a sentence that are suspicious."
    )
    lone_words: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Share of sentences of one word from which a text is suspicious.",
    )
    noise_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Share of characters that are no letters from which a passage is noise.",
    )
    header_repeats: int = Field(
        5, ge=2, description="Times a text repeats a line from which it may be a header of pages."
    )
    first_year: int = Field(1450, description="Earliest year of publication that is believed.")
    quality_examples: int = Field(
        5, ge=1, le=100, description="Examples that the quality report gives of each finding."
    )
