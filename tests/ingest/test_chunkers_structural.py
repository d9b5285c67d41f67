"""Structural chunks: sections and functions whole, code with the prose around it."""

from __future__ import annotations

import pytest

from ingest.chunkers.chunkers import SentenceChunker, StructuralChunker
from ingest.chunkers.packing import ChunkSpan
from ingest.types import Block

CODE = Block(text="def add(a, b):\n    return a + b", kind="code", section="Guide › Adding")
PROSE = Block(text="Two numbers are added like this:", section="Guide › Adding")
AFTER = Block(text="The sum is returned.", section="Guide › Adding")
CLASS = '''@cache
class Shop:
    """Sell things."""

    limit = 3

    def open(self):
        if self.closed:
            self.closed = False
        else:
            raise ValueError

        return self

    # Shut for the night.
    def close(self):
        self.closed = True

def after():
    return 1'''


def fenced(text: str) -> str:
    return f"```\n{text}\n```"


def chunks(*blocks: Block, most: int = 200) -> list[ChunkSpan]:
    return list(StructuralChunker(most, SentenceChunker(100, 0)).cut(blocks))


def texts(*blocks: Block, most: int = 200) -> list[str]:
    return [cut.text for cut in chunks(*blocks, most=most)]


def test_a_section_is_one_chunk_with_its_code() -> None:
    (cut,) = chunks(PROSE, CODE, AFTER)
    assert cut.text == "\n\n".join([PROSE.text, fenced(CODE.text), AFTER.text])
    assert (cut.run.section, cut.kind) == ("Guide › Adding", "text")


def test_code_keeps_its_indentation() -> None:
    body = Block(text="    return 1\n", kind="code")
    assert texts(body) == [fenced("    return 1")]
    assert texts(body, Block(text="Prose follows.")) == [
        f"{fenced('    return 1')}\n\nProse follows."
    ]


def test_sections_are_chunks_of_their_own() -> None:
    other = Block(text="Numbers are subtracted in the same way as above.", section="Guide › Less")
    assert texts(PROSE, AFTER, other) == [f"{PROSE.text}\n\n{AFTER.text}", other.text]


def test_a_heading_goes_with_the_section_below_it() -> None:
    assert texts(Block(text="Guide", section="Guide"), PROSE) == [f"Guide\n\n{PROSE.text}"]


def test_a_long_section_is_cut_between_paragraphs() -> None:
    paragraphs = [f"Paragraph {n} has words. It has more words." for n in range(6)]
    found = texts(Block(text="\n\n".join(paragraphs)), most=100)
    assert found == ["\n\n".join(paragraphs[n : n + 2]) for n in (0, 2, 4)]


def test_code_keeps_the_paragraph_that_introduces_it() -> None:
    filler = Block(text="Addition is old. " * 8, section="Guide › Adding")
    found = texts(filler, PROSE, CODE, AFTER, most=180)
    assert found == [filler.text.strip(), f"{PROSE.text}\n\n{fenced(CODE.text)}\n\n{AFTER.text}"]


def test_a_code_sample_is_never_cut_up_to_the_limit() -> None:
    sample = Block(text="\n\n".join(f"call_{n}()" for n in range(12)), kind="code", section="S")
    before = Block(text="Text before the sample stands here. " * 3, section="S")
    found = texts(before, sample, before, most=150)
    assert any(sample.text in text for text in found)


def test_a_long_file_is_cut_between_functions() -> None:
    functions = [f"def f{n}():\n    step()\n\n    return {n}" for n in range(9)]
    found = texts(Block(text="\n\n".join(functions), kind="code"), most=80)
    assert found == ["\n\n".join(functions[n : n + 2]) for n in range(0, 9, 2)]


@pytest.mark.parametrize("most", [215, 150, 110])
def test_methods_stay_whole_when_their_class_does_not(most: int) -> None:
    found = texts(Block(text=CLASS, kind="code"), most=most)
    assert len(found) > 1
    opening = CLASS[CLASS.index("    def open") : CLASS.index("\n\n    # Shut")]
    closing = CLASS[CLASS.index("    # Shut") : CLASS.index("\n\ndef after")]
    if most > len(opening):
        assert any(opening in text for text in found)
    assert any(closing in text for text in found)
    assert any("def after():\n    return 1" in text for text in found)


def test_a_branch_goes_with_its_condition() -> None:
    code = "if ready:\n    go()\nelse:\n    wait()\n\n" * 4
    for text in texts(Block(text=code, kind="code"), most=60):
        assert text.startswith("if ready") and text.count("if") == text.count("else")


def test_braces_close_what_they_opened() -> None:
    code = "".join(
        f"function f{n}() {{\n  one();\n\n  two();\n}}\n" for n in range(4)
    )  # blank lines inside are no seams
    for text in texts(Block(text=code, kind="code"), most=90):
        assert text.startswith("function") and text.endswith("}")


def test_lines_are_cut_when_nothing_else_helps() -> None:
    endless = "    " * 2 + "value = value + 1\n"
    found = texts(Block(text="def f():\n" + endless * 30, kind="code"), most=100)
    assert all(len(text) <= 100 for text in found)
    assert sum(text.count("value = value + 1") for text in found) == 30


def test_nesting_without_end_is_cut_too() -> None:
    code = "\n".join(" " * n + f"level_{n}:" for n in range(400))
    found = texts(Block(text=code, kind="code"), most=900)
    assert "".join("".join(text.split()) for text in found) == "".join(code.split())


def test_tables_of_a_long_section_are_cut_between_rows() -> None:
    rows = [f"| row {n} | value. {n} |" for n in range(12)]
    found = texts(PROSE, Block(text="\n".join(rows), kind="table", section=PROSE.section), most=100)
    assert [line for text in found for line in text.split("\n") if line] == [PROSE.text, *rows]


def test_records_stay_records() -> None:
    record = Block(text="Name: Bob.", kind="record", section=PROSE.section)
    assert [cut.kind for cut in chunks(PROSE, record, AFTER)] == ["text", "record", "text"]
