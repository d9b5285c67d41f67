"""Index terms: the same word in different forms meets itself, in every script."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from core.language.analysis import analyze, content_terms, query_terms, terms

ODD_TEXTS = ["", " ", "\x00", "\n\t", "…", "😀", "\ufffd", "\u200b", "\u0301", "'", "--", "++", "."]


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("connections", "connected", "en"),
        ("user's", "users", "en"),
        ("GPUs", "gpu", "en"),
        ("café", "cafe", "en"),
        ("Dvořák", "Dvorak", "en"),
        ("ＡＢＣ", "abc", "en"),
        ("wi\u00adfi", "wifi", "en"),
        ("zero\u200bwidth", "zerowidth", "en"),
        ("ﬁles", "file", "en"),
        ("cafe\u0301", "café", "fr"),
        ("Häuser", "häusern", "de"),
        ("книгами", "книга", "ru"),
        ("людей", "человек", "ru"),
        ("шёл", "шел", "ru"),
        ("и\u0306од", "йод", "ru"),
        ("книгами", "книга", "uk"),
        ("комп’ютерами", "комп'ютер", "uk"),
        ("м\u02bcяч", "м'ячі", "uk"),
        ("1,000,000", "1000000", "en"),
        ("1\u00a0000", "1000", "ru"),
        ("كتاب", "كتاب", "ar"),
        ("STRASSE", "straße", "de"),
    ],
)
def test_forms_of_one_word_share_a_term(one: str, other: str, language: str) -> None:
    assert terms(one, language) == terms(other, language) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jax.lax.scan", ["jax.lax.scan", "jax", "lax", "scan"]),
        ("DistributedDataParallel", ["distributeddataparallel", "distribut", "data", "parallel"]),
        ("torch.nn.Module", ["torch.nn.module", "torch", "nn", "modul"]),
        ("max_pool_size", ["max_pool_size", "max", "pool", "size"]),
        ("MAX_LEN", ["max_len", "max", "len"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("--no-cache", ["--no-cache", "no", "cach"]),
        ("v2.1", ["v2.1", "2.1"]),
        ("3.11", ["3.11"]),
        ("2.0.0rc1", ["2.0.0rc1"]),
        ("HTTP/2", ["http/2", "http", "2"]),
        ("C++ and C#", ["c++", "and", "c#"]),
        ("node.js", ["node.js", "node", "js"]),
        ("user@example.org", ["user@example.org", "user", "exampl", "org"]),
        ("well-known", ["well", "known"]),
        ("The end.Next", ["the", "end.next", "end", "next"]),
        ("__init__", ["__init__", "init"]),
        ("d['key']", ["d", "key"]),
        ("l'homme", ["l", "homm"]),
        ("12.05.2020", ["12.05.2020", "2020"]),
        ("调用jax.lax.scan函数", ["调用", "jax.lax.scan", "jax", "lax", "scan", "函数"]),
        ("神经网络", ["神经", "网络", "神经网", "神经网络"]),
        ("ราคา", ["รา", "าค", "คา"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("한국어 문장", ["한국어", "문장"]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text, "en") == expected


def test_a_brand_written_in_small_letters_meets_its_camel_case() -> None:
    assert set(terms("numpy")) <= set(terms("NumPy"))
    assert set(terms("youtube")) <= set(terms("YouTube"))


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("模型 connections", "zh", "connect"),
        ("The word книгами", "en", "книга"),
        ("Файлы connections", "ru", "connect"),
        ("The word їжею", "en", "їжа"),
    ],
)
def test_the_script_of_a_token_outranks_the_language_of_the_text(
    text: str, language: str, expected: str
) -> None:
    assert expected in terms(text, language)


def test_cyrillic_without_a_given_language_is_detected_from_the_whole_text() -> None:
    assert terms("Вони мали книги, які їм дали") == terms("Вони мали книги, які їм дали", "uk")
    assert "мати" in terms("Вони мали книги, які їм дали")


def test_offsets_point_at_the_original_text() -> None:
    text = "Ｆｕｌｌ wi\u00adfi, комп’ютерами; torch.nn.Module 神经网络"
    places = {token.term: text[token.start : token.end] for token in analyze(text, "uk")}
    assert places["full"] == "Ｆｕｌｌ"
    assert places["wifi"] == "wi\u00adfi"
    assert places["комп'ютер"] == "комп’ютерами"
    assert places["modul"] == "Module"
    assert places["神经网络"] == "神经网络"


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("What is the maximum timeout?", "en", ["maximum", "timeout"]),
        ("Какой максимальный размер файла?", "ru", ["максимальный", "размер", "файл"]),
        ("Який максимальний розмір файлу?", "uk", ["максимальний", "розмір", "файл"]),
        ("最大的文件是什么？", "zh", ["最大", "文件"]),
        ("What is the US GDP?", "en", ["us", "gdp"]),
        ("US GDP", "en", ["us", "gdp"]),
        ("US 的 GDP", "zh", ["us", "gdp"]),
        ("WHAT IS THE TIMEOUT", "en", ["timeout"]),
        ("What don't you know", "en", ["know"]),
        ("who is it", "en", ["who", "is", "it"]),
        ("WHO IS IT", "en", ["who", "is", "it"]),
        ("", "en", []),
    ],
)
def test_content_terms(text: str, language: str, expected: list[str]) -> None:
    assert content_terms(text, language) == expected


def test_query_terms_give_every_form_a_word_has_in_the_collection() -> None:
    assert "мати" in query_terms("Що мали люди?", ["ru", "uk"])[0]
    assert "мати" in query_terms("мали", ["ru", "uk"])[0]
    assert query_terms("нового", ["uk"])[0] >= {"нове", "новий"}  # no reading is likelier
    found = query_terms("running 书 running", ["en", "zh", "de", "und"])
    assert found[0] >= {"run", "running"}
    assert found[1] == {"书"}
    assert len(found) == 2


def test_query_terms_keep_the_words_of_an_identifier_apart() -> None:
    found = query_terms("What does jax.lax.scan do?", ["en"])
    assert found == [{"jax.lax.scan"}, {"jax"}, {"lax"}, {"scan"}]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_give_well_formed_terms(text: str) -> None:
    assert all(terms(text))
    assert query_terms(text, ["en", "ru"]) == [] or terms(text)


def test_a_huge_word_becomes_one_cut_term() -> None:
    assert terms("a" * 50_000) == ["a" * 64]
    assert [len(term) for term in terms("ж" * 50_000)] == [64]


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from("aZ_.-+#@'’/0 ,\n\"жїЇё’中文的ا֎ิカ\u0301\u200b\u00ad\ufdfa²½"),
            st.characters(codec="utf-8"),
        ),
        max_size=60,
    ),
    st.sampled_from([None, "en", "ru", "uk", "zh", "de", "und", "xx"]),
)
def test_any_text_gives_terms_fit_for_the_index(text: str, language: str | None) -> None:
    for token in analyze(text, language):
        assert 0 < len(token.term) <= 64
        assert not any(c.isspace() or c == '"' for c in token.term)
        assert 0 <= token.start < token.end <= len(text)
    assert terms(text, language) == [token.term for token in analyze(text, language)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_text_are_one(form: str) -> None:
    text = "Crème brûlée, ёлка, їжак"
    normal = unicodedata.normalize(form, text)  # type: ignore[arg-type]
    assert terms(normal, "uk") == terms(text, "uk")


@pytest.mark.parametrize(("said", "loaded"), [("How are you, John?", []), ("中文 слово їжа", None)])
def test_dictionaries_load_without_a_word_and_not_for_english(
    said: str, loaded: list[str] | None
) -> None:
    script = (
        f"import sys; from core.language.analysis import terms; terms({said!r});"
        "print(sorted({'jieba', 'pymorphy3', 'py3langid', 'numpy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert loaded is None or shown.stdout.strip() == str(loaded)
