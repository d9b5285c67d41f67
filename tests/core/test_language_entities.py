"""Names found by rules, and what a tagger adds to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.language.cues import cues, negations
from core.language.entities import MAX_CHARACTERS, MIN_CHARACTERS, Entity, entities
from languages.language import known_languages


def names(text: str, language: str = "en") -> list[tuple[str, str]]:
    return [(entity.text, entity.kind) for entity in entities(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Where did Marie Curie work?", "en", [("Marie Curie", "NAME")]),
        ("Is the University of Oslo old?", "en", [("University of Oslo", "ORG")]),
        ("What did J. K. Rowling write?", "en", [("J. K. Rowling", "PERSON")]),
        ("We met Dr. Smith of NASA.", "en", [("Smith", "PERSON"), ("NASA", "ABBREVIATION")]),
        ("Alice's letters to Bob's aunt", "en", [("Bob", "NAME")]),
        ("Describe Paris in March.", "en", [("Paris", "NAME")]),
        ("Where is Ivan?", "en", [("Ivan", "NAME")]),
        ("Paris is old. Rome is older.", "en", []),
        ("Does the U.S. fly to it?", "en", [("U.S.", "ABBREVIATION")]),
        ("use jax.lax.scan or DataLoader()", "en",
         [("jax.lax.scan", "CODE"), ("DataLoader()", "CODE")]),
        ("a disk of 16 GB and 5 MHz", "en", []),
        ("COVID-19 and chapter XIV", "en", [("COVID-19", "ABBREVIATION")]),
        ("STOP THE TRAIN NOW PLEASE", "en", []),
        ('Who wrote "War and Peace"?', "en", [("War and Peace", "WORK_OF_ART")]),
        ('He said "hello there" and "It is late."', "en", []),
        ("wo die Katze im Haus schläft", "de", []),
        ("Кто написал «Войну и мир»?", "ru", [("Войну и мир", "WORK_OF_ART")]),
        ("Когда жил Л. Н. Толстой?", "ru", [("Л. Н. Толстой", "PERSON")]),
        ("Это сказал профессор Иванов из США.", "ru",
         [("Иванов", "PERSON"), ("США", "ABBREVIATION")]),
        ("Он учился в Университете Осло.", "ru", [("Университете Осло", "ORG")]),
        ("Коли народився Тарас Шевченко?", "uk", [("Тарас Шевченко", "NAME")]),
        ("《红楼梦》是谁写的?", "zh", [("红楼梦", "WORK_OF_ART")]),
        ("他在腾讯公司和清华大学工作", "zh", [("腾讯公司", "ORG"), ("清华大学", "ORG")]),
        ("曹雪芹先生和马克·吐温", "zh", [("曹雪芹", "PERSON"), ("马克·吐温", "PERSON")]),
        ("这家公司在哪里?", "zh", []),
        ("", "en", []),
    ],
)  # fmt: skip
def test_names_of_a_text(text, language, expected) -> None:
    assert names(text, language) == expected


def test_a_noun_with_a_capital_is_no_name_where_all_nouns_have_one() -> None:
    assert names("wo die Katze schläft", "de") == []
    assert names("wo Angela Merkel schläft", "de") == [("Angela Merkel", "NAME")]


def test_words_of_a_headline_are_no_names_by_themselves() -> None:
    headline = "Harbour Strike in Northern Ports Ends after Talks with Unions"
    assert ("Talks", "NAME") not in names(headline)


def test_a_tagger_adds_names_and_the_longer_find_wins() -> None:
    text = "Where did Marie Curie work in the old harbour?"

    def tagger(given: str) -> list[Entity]:
        found = [("Marie", "PERSON"), ("Curie", "PERSON"), ("old harbour", "PHRASE")]
        return [Entity(n, k, given.index(n), given.index(n) + len(n)) for n, k in found]

    found = entities(text, "en", tagger)
    assert [(e.text, e.kind) for e in found] == [("Marie Curie", "NAME"), ("old harbour", "PHRASE")]


def test_for_the_same_span_the_tagger_knows_the_kind() -> None:
    def tagger(given: str) -> list[Entity]:
        return [Entity("Marie Curie", "PERSON", 4, 15)]

    assert [e.kind for e in entities("Did Marie Curie work?", "en", tagger)] == ["PERSON"]


PIECES = st.sampled_from(
    ["Marie", "Curie", "the", "of", "NASA", "«", "»", "《", "》", '"', ".", ". ", " ", "\n", "公司",
     "腾讯", "·", "Иван", "из", "a.b", "16 GB", "É", "ß", "ǅ", "\u0301", "İ", "😀", "J.", "&"]
)  # fmt: skip
ANYTHING = st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=60)


@given(ANYTHING, st.sampled_from([*known_languages(), "de", "und"]))
def test_entities_are_spans_in_order_that_do_not_overlap(text, language) -> None:
    found = entities(text, language)
    assert found == entities(text, language)
    for entity in found:
        assert text[entity.start : entity.end] == entity.text
        assert MIN_CHARACTERS <= len(entity.text) <= MAX_CHARACTERS
    for one, other in zip(found, found[1:], strict=False):
        assert one.end <= other.start


@pytest.mark.parametrize("language", known_languages())
def test_every_language_has_the_lists_that_steer_the_ranking(language) -> None:
    words = cues(language)
    for name in ("definition", "example", "conclusion", "code", "version", "version_before"):
        assert words.words(name)
        assert all(words.found(name, f" {word} ") for word in words.words(name))
    assert negations() >= {word.casefold() for word in words.words("negation")}


def test_a_cue_is_a_whole_word_where_words_have_spaces() -> None:
    assert not cues("en").found("example", "counterexamples")
    assert cues("fr").language == "en"
