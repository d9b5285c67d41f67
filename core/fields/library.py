"""Settings: say what makes a library catalogue."""

from __future__ import annotations

from pydantic import Field

from core.fields.group import Group


class LibrarySettings(Group):
    """Say what makes a library catalogue."""

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
