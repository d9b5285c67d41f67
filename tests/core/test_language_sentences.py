"""Sentence spans: abbreviations, decimals, Chinese punctuation, lists and records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.sentences import cut_span, record_spans, sentence_spans


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


# "|" marks where a sentence ends.
@pytest.mark.parametrize(
    "marked",
    [
        "One. |Two! |Three? |Four",
        "Dr. Smith met Mrs. Jones. |They talked.",
        "Use a tool, e.g. Fig. 3, i.e. the map. |Done.",
        "It costs 3.14 dollars in v2.1. |See https://a.org/x.html?y=1. |Open node.js.",
        "A. S. Pushkin wrote it. |J. R. R. Tolkien did not.",
        "The U.S. Army left. |He lives in the U.S. |The end.",
        "No. 5 is best. |No. |I disagree.",
        "\"Why?\" he asked. |\"Go.\" |Then she left (at last.) |Fine.",
        "Wait... what? |Yes!",
        "Really?! |Yes.",
        "It was 1999. |Then came 2000.",
        "Он родился в 1799 г. |Потом жил в г. Москва на ул. Ленина.",
        "Книги, т. е. тексты, рис. 5 и т. д. |Конец.",
        "А. С. Пушкин, см. гл. 2. |Завод им. Ленина. |Ст. 5 закона.",
        "«Куда?» — спросил он. |Ну... ладно.",
        "Стоит 5 тыс. руб. |Это много.",
        "Він народився у 1814 р. у селі. |Т. Шевченко писав (див. рис. 3). |Це т. зв. поезія.",
        "华沙的第一家歌剧院在哪里？|他说：“你好。”|然后走了。",
        "是吗?|谁维护?|最近有投诉吗?",
        "价格3.14元；|很好……是的。",
        "调用torch.nn.Module。|返回v2.1",
        "emoji 😀. |Next 👩‍👩‍👧!",
        "مرحبا بالعالم. |كيف حالك؟ نعم.",
    ],
)  # fmt: skip
def test_sentences_of_a_paragraph(marked: str) -> None:
    parts = marked.split("|")
    assert cut("".join(parts)) == [part.strip() for part in parts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("This is a wrapped\nparagraph of text.", ["This is a wrapped\nparagraph of text."]),
        ("First\n\nSecond", ["First", "Second"]),
        ("# Title\nBody text here", ["# Title", "Body text here"]),
        ("- one\n- two\n  goes on", ["- one", "- two\n  goes on"]),
        ("1. First thing\n2. Second thing", ["1. First thing", "2. Second thing"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Name: Bob\nAge: 5", ["Name: Bob", "Age: 5"]),
        ("Alice: hi. How?\nBob: fine", ["Alice: hi.", "How?", "Bob: fine"]),
        ("姓名：张三\n年龄：五岁", ["姓名：张三", "年龄：五岁"]),
        ("[10:05] Bob left\n[10:06] Ann came", ["[10:05] Bob left", "[10:06] Ann came"]),
        ("Text before:\n* item", ["Text before:", "* item"]),
        ("\r\nOne.\r\n\r\nTwo.", ["One.", "Two."]),
        ("", []),
        (" \n\t ", []),
        ("\x00", ["\x00"]),
        ("...", ["..."]),
        ("\ufffd. \ufffd", ["\ufffd.", "\ufffd"]),
    ],
)
def test_line_breaks(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_a_long_sentence_is_cut_after_punctuation_or_at_a_space() -> None:
    clauses = "word " * 90 + "end, " + "word " * 60
    assert [part[-4:] for part in cut(clauses)] == ["end,", "word"]
    assert all(len(part) <= 600 and "  " not in part for part in cut("word " * 500))
    assert [len(part) for part in cut("中" * 1300)] == [600, 600, 100]


def test_a_cut_does_not_tear_a_joined_emoji() -> None:
    family = "👩\u200d👩\u200d👧"
    text = family * 30
    pieces = [text[a:b] for a, b in cut_span(text, 0, len(text), 12)]
    assert "".join(pieces) == text
    assert all(len(piece) <= 12 and piece == family * (len(piece) // 5) for piece in pieces)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from('aB .!?…\n\t:;,-|#。！？；，“”"()1г中Д'), st.characters()
        ),
        max_size=120,
    )
)
def test_spans_are_trimmed_ordered_and_cover_the_text(text: str) -> None:
    spans = sentence_spans(text)
    place = 0
    for start, end in spans:
        assert place <= start < end <= len(text)
        assert not text[place:start].strip()
        assert text[start:end] == text[start:end].strip()
        assert end - start <= 600
        place = end
    assert not text[place:].strip()


def test_each_field_of_a_record_is_a_sentence_however_long_it_is() -> None:
    body = "body: A shop tried to pay a sum back " + "and waited " * 20 + "in vain. It gave up."
    text = f"subject: Refund after 200 days refused\n{body}\n\ntags: refund, window"
    found = [text[start:end] for start, end in record_spans(text)]
    assert found[0] == "subject: Refund after 200 days refused"
    assert found[1].startswith("body: A shop") and found[1].endswith("in vain.")
    assert found[2:] == ["It gave up.", "tags: refund, window"]


@given(st.text(max_size=200))
def test_the_sentences_of_a_record_cover_all_but_white_space(text: str) -> None:
    spans = record_spans(text)
    assert "".join("".join(text[slice(*span)].split()) for span in spans) == "".join(text.split())
    assert spans == sorted(spans)
