"""Prints are equal for texts that say the same; keys are equal for a text and its book."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.pipeline import book_keys, isbns, plain, print_of, text_keys
from stores.sqlite.quality import FILE, ID, ISBN, TITLE

WORDS = st.lists(st.text("abcdефгї中文123", min_size=1, max_size=8), min_size=1, max_size=8)


@given(WORDS, st.sampled_from([" ", "  ", "\n", ", ", " – ", "; ", "\t"]))
def test_capitals_punctuation_and_spaces_say_nothing(words: list[str], between: str) -> None:
    said = " ".join(words)
    assert plain(between.join(words).upper()) == plain(said)
    assert print_of("text", f"«{said}»!") == print_of("text", said)
    assert plain(plain(said)) == plain(said)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The height is 3.5 mm.", "The height is 35 mm."),
        ("A shift of -5 degrees", "A shift of 5 degrees"),
        ("Written in C++", "Written in C"),
        ("Written in C#", "Written in C"),
        ("a < b", "a > b"),
        ("10 %", "10 $"),
        ("кот", "кіт"),
        ("not open", "now open"),
    ],
)
def test_what_says_something_else_has_another_print(one: str, other: str) -> None:
    assert print_of("text", one) != print_of("text", other)


def test_prints_tell_annotations_from_content_and_keep_every_sign_of_code() -> None:
    assert print_of("annotation", "A book.") != print_of("text", "A book.")
    assert print_of("code", "f(a, b)") != print_of("code", "f(a b)")
    assert print_of("code", "f(a,  b)\n") == print_of("code", "f(a, b)")
    assert print_of("text", "* * *") != print_of("text", "…")
    assert print_of("table", "| 1 | 2 |") != print_of("table", "| 12 |")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("978-0-306-40615-7", ["9780306406157"]),
        ("ISBN 0-306-40615-2 (pbk.)", ["9780306406157"]),
        ("080442957X", ["9780804429573"]),
        ("978-0-306-40615-8", []),
        ("1234567890", []),
        ("+1 555 010 2030", []),
        ("", []),
    ],
)
def test_only_valid_isbn_count(text: str, found: list[str]) -> None:
    assert list(isbns([text])) == found


def keys_of_book(**fields: str) -> set[tuple[int, str]]:
    return set(book_keys("b1", "", {}, fields.items()))


def test_a_record_names_a_file_whatever_the_field_is_called() -> None:
    text = set(text_keys("Texts/Part 1/Alice.PDF", "", {}))
    for value in ("alice.pdf", "Part 1/alice.pdf", "./texts/part 1/Alice.pdf", "Part 1\\Alice.pdf"):
        assert {key for key in text & keys_of_book(файл=value) if key[0] == FILE}, value
    for value in ("https://x.example/alice.pdf", "alice", "bob.pdf", "texts/alice.pdf", "a\nb.pdf"):
        assert not text & keys_of_book(file=value), value


def test_a_file_is_named_by_the_id_or_the_isbn_of_its_record() -> None:
    assert (ID, "b1") in set(text_keys("x/B1.docx", "", {})) & keys_of_book()
    assert not set(text_keys("b1", "", {}))
    assert not {key for key in book_keys("books.csv#3", "", {}, []) if key[0] == ID}
    named = set(text_keys("978-0-306-40615-7.pdf", "", {}))
    assert (ISBN, "9780306406157") in named & keys_of_book(isbn="0306406152")
    inside = set(text_keys("x.pdf", "", {"isbn": ["0-306-40615-2"]}))
    assert (ISBN, "9780306406157") in inside & keys_of_book(ISBN13="9780306406157")
    assert not {key for key in keys_of_book(shelf="0306406152") if key[0] == ISBN}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Edwin A. Abbott", "Abbott, Edwin A., 1838-1926", True),
        ("Лев Толстой", "Толстой, Лев", True),
        ("Edwin Abbott", "Edwin A. Abbott", False),
        ("", "", False),
    ],
)
def test_title_and_one_author_are_the_same(one: str, other: str, same: bool) -> None:
    text = set(text_keys("t.pdf", "Flatland: a Romance", {"authors": [one, "Someone Else"]}))
    book = set(book_keys("b", "FLATLAND. A romance", {"authors": [other]}, []))
    assert any(key[0] == TITLE for key in text & book) == same
    others = set(book_keys("b", "Flatland", {"authors": [other]}, []))
    assert not text & others
