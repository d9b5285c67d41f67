"""Full text: a query is only words, identifiers stay whole, statistics are per collection."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import log

import pytest
from behind import full_text_hits, indexed
from fakes import Shelf, document, write
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from core.auth import AuthContext
from core.language.analysis import query_terms, terms
from retrievers.fusion import MAX_TERMS, TEXT
from retrievers.hybrid import hybrid_search
from retrievers.types import Index, Query
from stores.sqlite.fulltext import match_expression
from stores.store import parts

ANN = AuthContext(tenant="acme", user="ann")
Search = Callable[..., list[str]]


@pytest.fixture
def search(index: Callable[..., Index]) -> Search:
    """Return the document ids that a query finds, best first."""

    def run(query: str, limit: int = 50, **values: object) -> list[str]:
        searched = index(**values)
        found = hybrid_search(searched, Query(query, ANN), [TEXT], {TEXT: limit}, limit)
        return [item.document_id for item in found.evidence]

    return run


@pytest.mark.parametrize(
    "query",
    [
        'harbour"',
        '"harbour',
        "NEAR(harbour, 2)",
        "harbour*",
        "-harbour",
        "body:harbour",
        "{title body}: harbour",
        "^harbour",
        "harbour AND",
        "NOT harbour",
        "harbour) OR (",
        "harbour'; DROP TABLE chunks; --",
        "harbour\x00",
        "\x00harbour",
        "😀 harbour 😀",
        "harbour " * 10_000,
        "harbour " + " ".join(f"filler{n}" for n in range(10_000)),
        "+harbour \\ % _",
    ],
)
def test_operators_in_a_query_are_only_words(shelf: Shelf, search: Search, query: str) -> None:
    shelf.put({"a": "the harbour", "b": "the forest"})
    assert search(query) == ["a"]
    assert indexed(shelf.store, shelf.id) == 2


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "-", "(", ":", "\x00", "😀", "…", "'"])
def test_a_query_without_words_finds_nothing(shelf: Shelf, search: Search, query: str) -> None:
    shelf.put({"a": 'the " harbour * - ( :'})
    assert search(query) == []


def test_any_text_can_be_indexed_and_searched(shelf: Shelf) -> None:
    @given(text=st.text(max_size=60), query=st.text(max_size=60))
    def check(text: str, query: str) -> None:
        shelf.put({"a": text})
        for words in (query, text):
            asked = query_terms(words, {"en"})[:MAX_TERMS]
            found = full_text_hits(shelf.store, shelf.id, asked, 5)
            assert len(found) <= 1
            shared = {t for group in asked for t in group} & set(terms(text, "en"))
            if not shared:
                assert found == []

    check()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("client.pay.v2", "dotted"),
        ("ERR_42-7", "code"),
        ("user@example.org", "mail"),
        ("/var/log/app.log", "path"),
        ("3.11.4", "version"),
        ("C++", "language"),
    ],
)
def test_an_identifier_is_found_whole(
    shelf: Shelf, search: Search, query: str, expected: str
) -> None:
    texts = {
        "dotted": "Call client.pay.v2 once.",
        "decoy": "The client must pay, v2 or not. Error 42, see 7. C is a language.",
        "code": "It fails with ERR_42-7.",
        "mail": "Write to user@example.org today.",
        "path": "Look into /var/log/app.log first.",
        "version": "Needs 3.11.4 at least.",
        "language": "Written in C++ long ago.",
    }
    shelf.put(texts)
    assert search(query)[0] == expected


def test_title_and_keywords_weigh_more_than_the_body(shelf: Shelf, search: Search) -> None:
    shelf.put({"body": "harbour words one two three"})
    shelf.put({"keyword": "other words one two"}, metadata={"keywords": ["harbour"]})
    shelf.put({"title": "other words one two three"}, title="Harbour")
    shelf.put({f"f{n}": "filler words one two three four" for n in range(9)})
    assert search("harbour", text_cutoff=0) == ["title", "keyword", "body"]


def test_hits_far_below_the_best_are_cut_off(shelf: Shelf, search: Search) -> None:
    shelf.put({"best": "harbour crane pilot tide"})
    shelf.put({"weak": "crane " + " ".join(f"w{n}" for n in range(200))})
    shelf.put({f"f{n}": "other text" for n in range(9)})
    assert search("harbour crane pilot tide", text_cutoff=0) == ["best", "weak"]
    assert search("harbour crane pilot tide", text_cutoff=0.3) == ["best"]


def test_equal_scores_come_in_the_order_of_their_ids(
    shelf: Shelf,
) -> None:
    rows = shelf.put({f"d{n}": "same text" for n in range(7)})
    found = full_text_hits(shelf.store, shelf.id, [{"same"}], 4)
    assert [key for key, _ in found] == sorted(row.chunks[0].chunk_id for row in rows)[:4]


def test_statistics_are_of_this_collection_alone(
    shelf: Shelf,
) -> None:
    shelf.put({f"d{n}": "tide" if n else "tide rope" for n in range(4)})
    weights = {"tide": log(1 + 4 / 5), "rope": log(1 + 4 / 2), "unheard": log(1 + 4 / 1)}

    def known() -> tuple[dict[str, float], list[tuple[str, float]]]:
        words = parts(shelf.store).fulltext
        found = words.inverse_frequencies(shelf.id, ["rope", "tide", "unheard", "rope"])
        return found, full_text_hits(shelf.store, shelf.id, [{"rope"}], 5)

    before = known()
    assert before[0] == pytest.approx(weights) and before[1]
    for tenant, name in (("rival", "main"), ("acme", "other")):
        other = shelf.intake.open_collection(tenant, name, None)
        rows = [document(other, f"{tenant}{n}", "rope unheard rope") for n in range(9)]
        write(shelf.store, other, rows, shelf.embedder)
    assert known() == before


def test_removed_text_is_neither_found_nor_counted(shelf: Shelf, search: Search) -> None:
    shelf.put({"a": "rope", "b": "rope"})
    shelf.remove(["a"])
    assert search("rope") == ["b"]
    assert indexed(shelf.store, shelf.id) == 1
    weight = parts(shelf.store).fulltext.inverse_frequencies(shelf.id, ["rope"])["rope"]
    assert weight == pytest.approx(log(1 + 1 / 2))


def test_terms_are_quoted() -> None:
    assert match_expression([{"b", "a"}, {'say "hi"'}]) == '"a" OR "b" OR "say ""hi"""'
    assert match_expression([]) == ""


def test_the_order_is_that_of_bm25(
    shelf: Shelf,
) -> None:
    """SQLite and rank_bm25 use one formula; with k1 = 1.2, b = 0.75 they differ in the idf alone.

    SQLite takes log((N - n + 0.5) / (n + 0.5)) as rank_bm25 does, floored at 1e-6 where a term is
    in more than half of the chunks, so the words of the pool are kept rarer than that.
    """
    rng = random.Random(3)
    words = [f"zq{n}" for n in range(60)]
    texts = [" ".join(rng.choices(words, k=rng.randint(5, 25))) for _ in range(80)]
    rows = shelf.put({f"d{n:02}": text for n, text in enumerate(texts)})
    oracle = BM25Okapi([terms(text, "en") for text in texts], k1=1.2, b=0.75)
    ids = [row.chunks[0].chunk_id for row in rows]
    for _ in range(50):
        query = rng.sample(words, 3)
        found = full_text_hits(shelf.store, shelf.id, [set(terms(w, "en")) for w in query], 80)
        scores = oracle.get_scores([term for word in query for term in terms(word, "en")])
        expected = {key: score for key, score in zip(ids, scores, strict=True) if score > 0}
        assert dict(found) == pytest.approx(expected)
