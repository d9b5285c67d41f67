"""API names and function words."""

from __future__ import annotations

import pytest

from core.language.cues import stopwords
from core.language.identifiers import find_identifiers, is_identifier, split_identifier


@pytest.mark.parametrize(
    "word",
    ["jax.lax.scan", "snake_case", "MAX_LEN", "DataLoader", "dataLoader", "HTTPServer", "foo()",
     "items[]", "torch.nn.Module", "__init__", "--no-cache", "C++", "C#", "NumPy", "node.js"],
)  # fmt: skip
def test_names_from_code(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize(
    "word",
    ["", "scan", "Scan", "SCAN", "GPUs", "e.g", "U.S", "Ph.D", "3.14", "v2", "McDonald", "_", "2",
     "слово", "函数", "well-known", "two words", "end.", "don't", "O", "日本_x"],
)  # fmt: skip
def test_words_of_prose(word: str) -> None:
    assert not is_identifier(word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use jax.lax.scan, not DataLoader.", ["jax.lax.scan", "DataLoader"]),
        ("如何使用torch.nn.Module？", ["torch.nn.Module"]),
        ("Вызовите foo_bar() и foo_bar()", ["foo_bar()"]),
        ("pip install --no-cache x", ["--no-cache"]),
        ("Is C++ faster than C#?", ["C++", "C#"]),
        ("Plain prose. Nothing here, e.g. or i.e. at all", []),
        ("write to user.name@example.org", ["example.org"]),
        ("", []),
    ],
)
def test_find_identifiers(text: str, expected: list[str]) -> None:
    found = find_identifiers(text)
    if "@" in text:
        assert "user.name" not in found
    else:
        assert found == expected


def test_parts_carry_their_places() -> None:
    word = "torch.nn.DataParallel_v2"
    parts = split_identifier(word)
    assert [part for part, _, _ in parts] == ["torch", "nn", "Data", "Parallel", "v2"]
    assert all(word[start:end] == part for part, start, end in parts)


@pytest.mark.parametrize(
    ("language", "inside", "outside"),
    [
        ("en", ["the", "what", "don't", "of"], ["maximum", "time", "use"]),
        ("ru", ["и", "какой", "который", "бы"], ["максимальный", "книга"]),
        ("uk", ["та", "який", "що", "чи"], ["максимальний", "книга"]),
        ("zh", ["的", "了", "吗", "呢", "什么"], ["最大", "文件"]),
    ],
)
def test_stopwords_are_function_words(language: str, inside: list[str], outside: list[str]) -> None:
    listed = stopwords(language)
    assert set(inside) <= listed
    assert not set(outside) & listed
    assert all(word == word.casefold() for word in listed)


@pytest.mark.parametrize("language", ["de", "und", "", "../en", "EN"])
def test_other_languages_have_no_stopwords(language: str) -> None:
    assert stopwords(language) == frozenset()
