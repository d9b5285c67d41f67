"""Code and errors in a question are parted from its words."""

from __future__ import annotations

import pytest

from core.language.identifiers import Snippet, read_snippet

PYTHON = """I get this, what should I do?
Traceback (most recent call last):
  File "/home/me/fly.py", line 14, in <module>
    main()
  File "/home/me/fly.py", line 9, in main
    raise error
kites.CalmError: no wind at 3 m/s"""
JAVA = """Why does it stop?
Exception in thread "main" java.lang.IllegalStateException: line is torn
	at kites.Line.pull(Line.java:88)
	at kites.Main.main(Main.java:7)"""
SCRIPT = """What does this do?
from kites import fly
line = Line(20)
fly(line)"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (PYTHON, ("I get this, what should I do?", "kites.CalmError", "no wind at 3 m/s", [])),
        (
            JAVA,
            ("Why does it stop?", "java.lang.IllegalStateException", "line is torn", []),
        ),
        (
            "What does this do?\n```python\nkites.fly(line)\n```",
            ("What does this do?", "", "", ["kites.fly", "line"]),
        ),
        (
            SCRIPT,
            ("What does this do?", "", "", ["from", "kites", "import", "fly", "line", "Line"]),
        ),
        ("It fails with CalmError: no wind", ("It fails with", "CalmError", "no wind", [])),
        (
            'Traceback (most recent call last):\n  File "k.py", line 3\nkites.Calm: all is still',
            ("", "kites.Calm", "all is still", []),
        ),
        ("```\nfly(line)", ("", "", "", ["fly", "line"])),
    ],
)
def test_code_and_errors_are_told_from_words(
    question: str, expected: tuple[str, str, str, list[str]]
) -> None:
    assert read_snippet(question) == Snippet(*expected)


@pytest.mark.parametrize(
    "question",
    [
        "What does CalmError mean?",
        "How do I call kites.fly(line)?",
        "CalmError: no wind - what does it mean?",
        "Error: what does it mean?",
        "",
        "What is 3 = 4?\nAnd why?",
    ],
)
def test_a_question_in_words_stays_as_it_is(question: str) -> None:
    assert read_snippet(question) is None


def test_long_input_is_read_in_linear_time() -> None:
    assert read_snippet("a." * 2000 + "Error") is None
    assert read_snippet('  File "' * 600) is None
    assert read_snippet("`" * 4000) is None
