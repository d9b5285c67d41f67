"""Text of every encoding that people's old files are in, long and short."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentError
from ingest.loaders.text.encoding import decode
from ingest.loaders.text.legacy_encoding import guess

SENTENCES = {
    "ru": (
        "Библиотека открыта каждый день с девяти утра до пяти вечера.",
        "Возьмите с собой паспорт, чтобы получить читательский билет.",
        "Эта книга рассказывает о жизни моряков в северных морях.",
        "Новый каталог будет готов к концу следующего месяца.",
        "В зале можно работать с ноутбуком и брать книги на дом.",
    ),
    "uk": (
        "Бібліотека відчинена щодня з дев'ятої ранку до п'ятої вечора.",
        "Візьміть із собою паспорт, щоб отримати читацький квиток.",
        "Ця книжка розповідає про життя моряків у північних морях.",
        "Новий каталог буде готовий до кінця наступного місяця.",
        "У залі можна працювати з ноутбуком і брати книжки додому.",
    ),
    "zh": (
        "图书馆每天上午九点到下午五点开放。",
        "请带上您的身份证办理借书证，谢谢合作。",
        "这本书讲述了海上水手的生活和他们的故事。",
        "新的目录将在下个月底完成，欢迎读者使用。",
        "读者可以在阅览室里使用电脑，也可以把书借回家。",
    ),
    "en": (
        "The café’s naïve façade – “très chic” – cost £40 at Zoë’s.",
        "Señor Núñez paid 20 € for the crème brûlée…",
    ),
    "de": ("Die größten Städte Österreichs haben schöne Straßen für Fußgänger.",),
    "fr": ("L'élève a été très déçu par le résultat ; où êtes-vous allé cet été ?",),
    "pl": ("Zażółć gęślą jaźń, książka leży na półce w bibliotece.",),
    "tw": ("圖書館每天早上九點到下午五點開放，請帶您的證件來借書。",),
    "ja": ("図書館は毎日午前九時から午後五時まで開いています。",),
    "ko": ("도서관은 매일 아침 아홉 시부터 저녁 다섯 시까지 열려 있습니다.",),
}
ENCODINGS = {
    "ru": ("cp1251", "koi8-r", "cp866", "iso8859-5"),
    "uk": ("cp1251", "koi8-u", "cp1125", "iso8859-5"),
    "zh": ("gb18030", "gbk"),
    "en": ("cp1252",),
    "de": ("cp1252", "latin-1", "iso8859-15", "cp850"),
    "fr": ("cp1252", "latin-1"),
    "pl": ("cp1250", "iso8859-2"),
    "tw": ("big5",),
    "ja": ("cp932", "euc-jp"),
    "ko": ("euc-kr",),
}
UTF = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be",
)  # fmt: skip
CASES = [
    (language, encoding, sentence)
    for language, sentences in SENTENCES.items()
    for encoding in ENCODINGS[language]
    for sentence in sentences
]


@pytest.mark.parametrize(("language", "encoding", "sentence"), CASES)
def test_a_sentence(language: str, encoding: str, sentence: str) -> None:
    assert decode(sentence.encode(encoding), ".txt") == sentence


@given(data=st.data(), language=st.sampled_from(("ru", "uk", "zh")))
def test_texts_of_several_sentences(data: st.DataObject, language: str) -> None:
    encoding = data.draw(st.sampled_from(ENCODINGS[language]))
    chosen = data.draw(st.lists(st.sampled_from(SENTENCES[language]), min_size=2, max_size=6))
    numbers = data.draw(st.lists(st.integers(0, 9999), max_size=3))
    text = "\n".join([*chosen, *(f"{number}: ISBN {number}" for number in numbers)])
    assert decode(text.encode(encoding), ".md") == text


@pytest.mark.parametrize("encoding", UTF)
@pytest.mark.parametrize("language", ["ru", "uk", "zh", "en"])
def test_utf_with_and_without_a_mark(language: str, encoding: str) -> None:
    for sentence in SENTENCES[language]:
        for text in (sentence, sentence + "\n" + sentence, sentence[:14]):
            assert decode(text.encode(encoding), ".txt") == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Plain ASCII in UTF-16 without a mark", "utf-16-le"),
        ("## können\n\nkönnen\n\näöüß\n", "latin-1"),
        ("Привет, мир!", "cp1251"),
        ("Привет, мир!", "koi8-r"),
        ("ПРИВЕТ ВСЕМ", "cp1251"),
        ("ПРИВЕТ ВСЕМ", "cp866"),
        ("图书馆", "gb18030"),
        ("café", "cp1252"),
        ("名前,年齢,住所\n佐藤太郎,30,東京\n", "cp932"),
    ],
)
def test_short_texts(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding), ".txt") == text


@pytest.mark.parametrize("language", ["ru", "uk", "zh"])
def test_twenty_four_bytes(language: str) -> None:
    """Two words do not always tell: nine in ten of such pieces are read right."""
    right = total = 0
    for encoding in ENCODINGS[language]:
        for sentence in SENTENCES[language]:
            raw = sentence.encode(encoding)[:24]
            piece = raw.decode(encoding, "ignore")
            total += 1
            right += decode(piece.encode(encoding), ".txt") == piece
    assert right >= 0.9 * total, (right, total)


def test_a_few_broken_bytes_leave_utf_8_as_it_is() -> None:
    raw = (SENTENCES["ru"][0] * 5).encode()
    assert decode(raw.replace(b" ", b" \xff", 1), ".txt").count("\ufffd") == 1
    assert decode(raw[:-1], ".txt").startswith(SENTENCES["ru"][0])


def test_what_is_no_text() -> None:
    random.seed(5)
    for size in (300, 3000):
        with pytest.raises(DocumentError, match="binary content"):
            decode(random.randbytes(size), ".txt")


@given(st.binary(max_size=300))
def test_any_bytes_are_named_or_not(raw: bytes) -> None:
    name = guess(raw)
    assert name is None or raw.decode(name, "replace") is not None
