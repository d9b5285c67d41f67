"""Cleaning removes what nobody should read, and prose its links and marks; nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ingest.clean import clean_document, clean_text, plain_prose
from ingest.types import Block, ParsedDocument

HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            [
                "&amp;",
                "amp;",
                "&lt;",
                "lt;",
                "&#38;",
                "#60;",
                "<b>",
                "<",
                ">",
                "</p>",
                "<!--",
                "-->",
            ]
            + ["`", "(http://a)", "[", "]", "\u200b", "\u0301", "e", "\xa0", "\r\n", "\n\n\n", "  "]
            + ["\x00", "\u00ad", "\U000e0041", "\u037e", "\u1fef", "\ud800"]
        ),
    ),
    max_size=30,
).map("".join)


@given(HOSTILE, st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_cleaning_is_idempotent_and_leaves_no_nul(text: str, code: bool) -> None:
    cleaned = clean_text(text, code=code)
    assert clean_text(cleaned, code=code) == cleaned
    assert "\x00" not in cleaned
    cleaned.encode("utf-8")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a\u200bb\u00adc\u202ed", "abcd"),
        ("hidden\U000e0041\U000e0042 text", "hidden text"),
        ("10\xa0000 km", "10 000 km"),
        ("e\u0301", "é"),
        ("a  b\t\tc", "a b c"),
        ("a\r\n\r\n\r\n\r\nb", "a\n\nb"),
        ("R&amp;D &lt;3", "R&D <3"),
        ("a <b>bold</b> word", "a bold word"),
        ("List<String> and x < y", "List<String> and x < y"),
        ("the `<div>` tag and `&amp;`", "the `<div>` tag and `&amp;`"),
        ("see (https://a.b/c) for more", "see for more"),
        ("open https://a.b/c now", "open https://a.b/c now"),
        ("Ёлка, Її, 图书馆!", "Ёлка, Її, 图书馆!"),
        ("&" + "amp;" * 1000 + "lt;", "<"),
    ],
)
def test_prose(raw: str, expected: str) -> None:
    assert clean_text(raw) == expected


def test_code_keeps_spaces_tags_and_entities() -> None:
    code = "def f():\n    return  '<b>&amp;</b>'  # (http://x)"
    assert clean_text(code, code=True) == code


@pytest.mark.parametrize(
    "text",
    ["&" + "#38;" * 50 + "lt;b>", "<" * 500 + "b>" * 500, "<!-- " * 20_000, "&amp;" * 20_000],
)
def test_escapes_nested_to_outlast_the_rounds_are_defused(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert "&lt;" not in cleaned and "<b>" not in cleaned


def test_document_loses_empty_blocks_and_repeated_annotations() -> None:
    blocks = [
        Block(text=" \u200b "),
        Block(text="About  ships", kind="annotation"),
        Block(text="About ships", kind="annotation"),
        Block(text="x =  1", kind="code"),
    ]
    document = ParsedDocument(
        document_id="a", source="a", title=" T\x00 ", format="text", blocks=blocks,
        fields={"n": 1, "name": "a\x00b", "many": ["c\u200bd"]},
    )  # fmt: skip
    cleaned = clean_document(document)
    assert [block.text for block in cleaned.blocks] == ["About ships", "x =  1"]
    assert cleaned.title == "T"
    assert cleaned.fields == {"n": 1, "name": "ab", "many": ["cd"]}


def test_windows_signs_in_the_place_of_controls_are_read_as_such() -> None:
    assert clean_text("it\x92s \x93so\x94 \x96 5\x80\x81") == "it’s “so” – 5€"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("See https://x.example/a?b=1#c, then go on.", "See, then go on."),
        ("Ссылка: http://lib.example/ВОЙНА Текст", "Ссылка: Текст"),
        ("见https://t.example/x的书。", "见的书。"),
        ("Read (https://x.example) now", "Read now"),
        ("[the book](https://x.example/a_(b)) is here", "the book is here"),
        ("A **bold** and _slanted_ ***word***", "A bold and slanted word"),
        ("[b]bold[/b] [url=http://x.example]site[/url]", "bold site"),
        ("## Heading\nText", "Heading\nText"),
        ("2*3*4, a*b and snake_case_name", "2*3*4, a*b and snake_case_name"),
        ("C# and F# [1] are fine", "C# and F# [1] are fine"),
    ],
)
def test_what_goes_and_what_stays(text: str, plain: str) -> None:
    assert " ".join(plain_prose(text).split(" ")).replace("  ", " ") == plain


@given(st.text(max_size=200))
def test_nothing_is_made_up(text: str) -> None:
    left = plain_prose(text)
    assert len(left) <= len(text) and set(left) <= set(text)


@pytest.mark.parametrize("part", ["*", "_", "[b]", "![", "[a](", "www.", "(", "https://", "# "])
def test_hostile_runs_are_quick(part: str) -> None:
    assert len(plain_prose(part * 20_000)) <= len(part) * 20_000
