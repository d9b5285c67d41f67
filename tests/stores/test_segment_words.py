"""Words in segments: scores are BM25's, rarities are the full text's, terms are found by bytes."""

from __future__ import annotations

import random

import bm25s
import numpy as np
import pytest
from fakes import OpenShelf, Shelf
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.errors import CallerError
from core.language.analysis import terms
from stores.segments import postings
from stores.segments.postings import SortedTerms, TermCounts, encode_terms
from stores.store import Store, parts

ANN = AuthContext(tenant="acme")
WORDS = [f"zq{n}" for n in range(40)]


@pytest.fixture
def store(open_store) -> Store:
    return open_store(segment_min_rows=10, segment_rebuild_min_rows=0)


def fill(shelf: Shelf, count: int, seed: int = 1):
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(2, 30))) for _ in range(count)]
    rows = shelf.put({f"d{seed}-{n:03}": text for n, text in enumerate(texts)})
    return {row.chunks[0].chunk_id: text for row, text in zip(rows, texts, strict=True)}


def scores(shelf: Shelf, query, **values) -> dict[str, float]:
    found = shelf.search.candidates(ANN, shelf.id, terms=query, vector=None, pool=1000, **values)
    assert found.cosine is None
    assert found.sentence is None
    return dict(zip(found.chunk_ids, found.bm25.tolist(), strict=True))


@pytest.mark.parametrize("count", [9, 80])
def test_scores_are_those_of_bm25s(shelf: Shelf, count: int) -> None:
    texts = fill(shelf, count)
    assert shelf.search.refresh(shelf.collection) is (count > 9)
    oracle = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    oracle.index([terms(text, "en") for text in texts.values()], show_progress=False)
    draw = random.Random(2)
    for _ in range(30):
        query = draw.sample(WORDS, 4)
        expected = dict(zip(texts, oracle.get_scores(query).tolist(), strict=True))
        expected = {key: score for key, score in expected.items() if score > 0}
        found = scores(shelf, [{word} for word in query])
        assert found == pytest.approx(expected, rel=1e-5)


def test_an_alternative_counts_once_with_the_largest_weight(shelf: Shelf) -> None:
    fill(shelf, 40)
    shelf.search.refresh(shelf.collection)
    one, two = (scores(shelf, [{word}]) for word in WORDS[:2])
    keys = set(one) | set(two)
    both = {key: one.get(key, 0) + two.get(key, 0) for key in keys}
    assert scores(shelf, [{WORDS[0], WORDS[1], "unheard"}]) == pytest.approx(both)
    assert scores(shelf, [{WORDS[0]}, {WORDS[1], WORDS[0]}]) == pytest.approx(both)
    weighted = {key: 3 * one.get(key, 0) + 2 * two.get(key, 0) for key in keys}
    query = [{WORDS[0]}, {WORDS[0], WORDS[1]}]
    found = scores(shelf, query, term_weights=[3.0, 2.0])
    assert found == pytest.approx(weighted, rel=1e-5)
    found = scores(shelf, query[:1] + [{WORDS[1]}], term_weights=[1.0, 0.0])
    assert found == pytest.approx(one)


def test_one_weight_per_word_is_needed(shelf: Shelf) -> None:
    with pytest.raises(CallerError, match="1 weights, 2 groups"):
        scores(shelf, [{"a"}, {"b"}], term_weights=[1.0])


@pytest.mark.parametrize("query", [[], [set()], [{""}], [{"unheard"}], [{"\x00"}], [{"a b"}]])
def test_words_that_nothing_contains_find_nothing(shelf: Shelf, query) -> None:
    assert scores(shelf, query) == {}
    fill(shelf, 40)
    assert scores(shelf, query) == {}
    shelf.search.refresh(shelf.collection)
    assert scores(shelf, query) == {}


def test_titles_and_keywords_count_by_their_weight(
    open_shelf: OpenShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "TITLE_WEIGHT", 4.4)
    monkeypatch.setattr(postings, "KEYWORDS_WEIGHT", 0.4)
    shelf = open_shelf(segment_min_rows=1)
    plain = shelf.row("plain", "harbour harbour harbour harbour rope tide")
    titled = shelf.row("titled", "rope tide", title="Harbour")
    keyword = shelf.row("keyword", "rope tide", metadata={"keywords": ["harbour"]})
    shelf.write(plain, titled, keyword)
    shelf.search.refresh(shelf.collection)
    found = scores(shelf, [{"harbour"}])
    assert found[plain.chunks[0].chunk_id] == pytest.approx(found[titled.chunks[0].chunk_id])
    assert keyword.chunks[0].chunk_id not in found


def test_rarities_are_those_of_the_full_text(shelf: Shelf) -> None:
    wanted = [*WORDS, "unheard"]

    def same() -> None:
        expected = parts(shelf.store).fulltext.inverse_frequencies(shelf.id, wanted)
        assert shelf.search.idf(shelf.id, wanted) == pytest.approx(expected)

    same()
    fill(shelf, 9)
    same()
    fill(shelf, 40, seed=2)
    same()
    shelf.search.refresh(shelf.collection)
    same()
    shelf.remove(["d2-003", "d2-004", "d1-001"])
    same()
    fill(shelf, 5, seed=3)
    shelf.remove(["d3-001"])
    same()


def test_languages_are_those_of_now(shelf: Shelf) -> None:
    assert shelf.search.languages(shelf.id) == frozenset()
    rows = [shelf.row(name, "a", language=name) for name in ("en", "ru")]
    shelf.write(*rows)
    assert shelf.search.languages(shelf.id) == {"en", "ru"}
    shelf.remove(["ru"])
    assert shelf.search.languages(shelf.id) == {"en"}


@given(st.sets(st.text(min_size=1, max_size=6), max_size=40), st.lists(st.text(max_size=6)))
def test_a_sorted_vocabulary_is_a_dict(known: set[str], asked: list[str]) -> None:
    stored = sorted(encode_terms(known))
    ends = np.cumsum([len(term) for term in stored], dtype=np.int64)
    vocabulary = SortedTerms(memoryview(b"".join(stored)), ends)
    numbers = {term: number for number, term in enumerate(stored)}
    for term in [*known, *asked]:
        assert vocabulary.get(term) == numbers.get(term.encode("utf-8", "surrogatepass"))


@given(
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=8),
    st.integers(0, 8),
)
def test_newer_rows_are_scored_as_if_they_were_in_the_segment(rows: list, cut: int) -> None:
    """The statistics are the segment's: a row of it gets the same score when counted apart."""
    whole = TermCounts()
    whole.add(rows)
    base = whole.postings()
    newer = TermCounts()
    newer.add(rows[:cut])
    newer.postings(base, len(rows))
    newer.add(rows[cut:])
    again = newer.postings(base, len(rows))
    for term in "abcdef":
        one, two = (np.zeros(len(rows), dtype=np.float32) for _ in range(2))
        base.add({term: 1.0}, one)
        again.add({term: 1.0}, two)
        assert one.tolist() == two.tolist()
        assert base.frequency(term) == again.frequency(term)
