"""How the place of a passage is told."""

from __future__ import annotations

import pytest

from core.types import place_of


@pytest.mark.parametrize(
    ("section", "page", "told"),
    [
        ("Slide 3 › Results", 3, "Slide 3 › Results"),
        ("Slide 3", 3, "Slide 3"),
        ("Slide 33 › Results", 3, "Slide 33 › Results · p. 3"),
        ("Guide › Limits", 7, "Guide › Limits · p. 7"),
        ("Books › row 4", None, "Books › row 4"),
        ("", 2, "p. 2"),
        ("", None, ""),
    ],
)
def test_a_slide_is_not_said_twice(section: str, page: int | None, told: str) -> None:
    assert place_of(section, page) == told
