"""What a sentence needs to be read alone comes with it."""

from __future__ import annotations

import pytest
from builders import piece

from reasoning.rules.answering.blocks import MOST_CHARACTERS, in_context, keeps_lines
from reasoning.rules.answering.relevance import Sentence

CODE = "To start it, run this command:\n\n```bash\nserve --port 80\n```\n\nThen open the page."


def found(text: str, chosen: str, language: str = "en", *, code: bool = False) -> str:
    item = piece(text, language)
    start = text.index(chosen)
    end = start + len(chosen)
    sentence = Sentence(item, start, end, 0.0, 0.5, 0.5, 0.5, None, frozenset(), has_kind=True)
    first, last = in_context(sentence.evidence, sentence.start, sentence.end, code=code)
    return text[first:last]


@pytest.mark.parametrize(
    ("text", "chosen", "language", "needed"),
    [
        (
            "The wards are:\n\n- north\n- south\n- east\n\nVisits end at 8.",
            "The wards are:",
            "en",
            "The wards are:\n\n- north\n- south\n- east",
        ),
        (
            "The engine was built in 1802. It was moved by horses.",
            "It was moved by horses.",
            "en",
            "The engine was built in 1802. It was moved by horses.",
        ),
        (
            "Мост построен в 1902 году. Он ведёт к рынку.",
            "Он ведёт к рынку.",
            "ru",
            "Мост построен в 1902 году. Он ведёт к рынку.",
        ),
        (
            "How is the basement? All is dry. The roof leaks.",
            "How is the basement?",
            "en",
            "How is the basement? All is dry.",
        ),
        ("Soup is served. The ward has 12 beds.", "The ward has 12 beds.", "en", None),
    ],
)
def test_a_sentence_brings_what_it_needs(
    text: str, chosen: str, language: str, needed: str | None
) -> None:
    assert found(text, chosen, language) == (needed or chosen)


STEPS = (
    "Soup:\n1. Boil it. Stir well.\n2. Salt it.\n3. Serve it.\n\nIt keeps for a day. It freezes."
)


@pytest.mark.parametrize("chosen", ["1. Boil it.", "2. Salt it.", "3. Serve it."])
def test_an_item_brings_its_list(chosen: str) -> None:
    item = piece(STEPS, "en")
    start = STEPS.index(chosen)
    first, last = in_context(item, start, start + len(chosen), code=False, items=True)
    assert STEPS[first:last] == STEPS.partition("\n\n")[0]


def test_a_sentence_that_announces_code_brings_the_whole_block() -> None:
    shown = found(CODE, "To start it, run this command:")
    assert shown.endswith("serve --port 80\n```")
    assert keeps_lines(shown)


def test_code_after_a_sentence_comes_only_to_who_asks_for_it() -> None:
    text = CODE.replace("this command:", "this command.")
    chosen = "To start it, run this command."
    assert found(text, chosen) == chosen
    assert "serve --port 80" in found(text, chosen, code=True)


def test_a_long_list_is_cut_after_a_whole_item() -> None:
    text = "The rooms are:\n" + "\n".join(f"- room {n} of the old building" for n in range(90))
    shown = found(text, "The rooms are:")
    assert len(shown) <= MOST_CHARACTERS
    assert shown.endswith("building")


def test_a_heading_is_no_antecedent() -> None:
    text = "# The bridge\n\nIt leads to the market."
    assert found(text, "It leads to the market.") == "It leads to the market."
