"""Docstrings of Python source become sections of an API with signatures and lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from loading import loaded, only, reason

from core.types import address_of
from ingest.loaders.text.docstrings import load
from ingest.types import ParsedDocument

SOURCE = '''"""Kites and lines."""
from typing import Annotated

def fly(kite, *, height: Annotated[int, Doc("how high")] = 3) -> bool:
    """Fly a kite.

    Parameters
    ----------
    kite : Kite
        The kite to fly,
        in one piece.

    Examples
    --------
    >>> fly(Kite())
    True

    .. deprecated:: 2.0
       Use :func:`soar` instead.
    """

class Kite:
    """A kite.

    Args:
        size: How large it
            is.
    """
    def __init__(self, size, colour="red"): ...
    async def reel(self, length: float) -> None:
        """Reel in.

        :param length: how much
        """
    @deprecated("use reel")
    def pull(self): ...
    def _private(self):
        "nobody reads this"
'''


def test_each_name_is_a_section_with_its_signature() -> None:
    (document,) = load("src/kite/air.py", SOURCE)
    assert isinstance(document, ParsedDocument)
    texts = {(block.section, block.kind): block.text for block in reversed(document.blocks)}
    fly = "kite.air › kite.air.fly"
    assert document.title == "kite.air"
    assert texts["kite.air", "text"] == "Kites and lines."
    assert texts[fly, "text"].startswith(
        "kite.air.fly(kite, *, height: int=3) -> bool\n\nFly a kite."
    )
    assert texts[fly, "code"] == ">>> fly(Kite())\nTrue"
    assert texts["kite.air › kite.air.Kite", "text"] == (
        "kite.air.Kite(size, colour='red')\n\nA kite.\n\nArgs:\n- size: How large it is."
    )
    assert "- length – how much" in texts["kite.air › kite.air.Kite.reel", "text"]
    assert "nobody" not in str(texts)


def test_numpy_sections_are_lists(tmp_path: Path) -> None:
    document = only(tmp_path / "air.py", SOURCE.encode())
    text = "\n".join(block.text for block in document.blocks)
    assert "Parameters:\n- kite (Kite): The kite to fly, in one piece." in text


def test_lines_are_anchors_and_notices_are_read(tmp_path: Path) -> None:
    document = only(tmp_path / "air.py", SOURCE.encode())
    assert address_of("air.py", "air › air.fly", document.metadata) == "air.py#L4"
    said = {one["name"]: one.get("deprecated") for one in document.metadata["entries"]}
    assert {name: notice for name, notice in said.items() if notice} == {
        "air.fly": "Deprecated since version 2.0: Use `soar` instead.",
        "air.Kite.pull": "Deprecated: use reel",
    }


def test_source_without_docstrings_is_no_document(tmp_path: Path) -> None:
    assert loaded(tmp_path / "x.py", b"x = 1\n") == ([], {})


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"def f(:\n", "line 1"), (b"print 1\n", "line 1")],
)
def test_what_is_no_python_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in reason(tmp_path / "x.py", content)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    assert reason(tmp_path / "x.py", b"(" * 5000 + b")" * 5000)
