"""Search through the tree: within the caller's rights, beside hybrid search, by both ways down."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from builders import weights_of
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.settings import Settings
from core.types import ToolSpec
from reasoning.rules.reasoner import RulesReasoner
from retrievers.tree.building import build_tree
from retrievers.tree.search import TreeQuery, TreeSearch, jaccard
from retrievers.tree.view import open_view
from retrievers.types import Index
from stores.sqlite.catalogue import Collection
from stores.store import Store
from tools.search import NO_TREE
from tools.toolbox import Toolbox
from tools.types import ToolResult

ANN = AuthContext(tenant="acme", user="ann")
BOB = AuthContext(tenant="acme", user="bob")
TOPICS = ("harbour boats", "winter snow", "orchard apples", "railway engines")
ASKED = "What do the papers say of harbour boats?"


@pytest.fixture
def built(
    index: Callable[..., Index], store: Store, collection: Collection, embedder: FakeEmbedder
) -> Index:
    rows = [
        document(
            collection,
            f"d{n}",
            f"The town council wrote a long report on {topic} in the year of plan {n}.",
            title=f"Report {n}",
            source=f"{n}.md",
            acl=["user:bob"] if n % 4 == 3 else [],
        )
        for n, topic in enumerate(TOPICS * 6)
    ]
    write(store, collection, rows, embedder)
    made = index()
    build_tree(made)
    return made


def ask(index: Index, auth: AuthContext = ANN, **more: object) -> ToolResult:
    arguments = {"query": ASKED, "language": "en", **more}
    return Toolbox(index).run("search_tree", arguments, auth, time.monotonic() + 60)


@pytest.mark.parametrize("mode", ["traversal", "collapsed"])
@pytest.mark.parametrize("words", [True, False])
def test_both_ways_find_what_is_near_and_nothing_hidden(
    built: Index, mode: str, words: bool
) -> None:
    found = ask(built, mode=mode, words=words)
    assert "harbour boats" in found.evidence[0].text
    assert not [one for one in found.evidence if "railway" in one.text]
    assert len({one.chunk_id for one in found.evidence}) == len(found.evidence)
    seen = {one.text for one in ask(built, BOB, limit=50, query="railway engines").evidence}
    assert any("railway" in text for text in seen)


def test_without_a_tree_hybrid_search_answers_and_says_so(
    index: Callable[..., Index], store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "a", "The harbour boats land.")], embedder)
    found = ask(index())
    assert [one.text for one in found.evidence] == ["The harbour boats land."]
    assert found.stages[-1].note == NO_TREE
    assert "search_tree" not in {one.name for one in Toolbox(index()).specs(ANN)}


def test_a_threshold_and_a_number_bound_what_the_tree_gives(built: Index) -> None:
    view = open_view(built, ANN)
    assert view is not None and built.embedder is not None
    vector = built.embedder.embed_query(ASKED)

    def hits(**more: object) -> list[float]:
        query = TreeQuery(ASKED, vector, "en", **more)  # type: ignore[arg-type]
        return [one.score for one in TreeSearch(view, query).hits()]

    assert len(hits(nearest=3)) <= 3
    assert hits(threshold=0.0) == []
    assert all(score >= 0.5 for score in hits(mode="collapsed", threshold=0.5))


def test_jaccard() -> None:
    assert jaccard(["a", "b"], ["b", "c"]) == pytest.approx(1 / 3)
    assert jaccard([], []) == 0


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        ("What is the harbour about?", ["summarise", "search_tree"]),
        ("Summarise this collection", ["summarise"]),
        ("Why does the harbour close?", ["search"]),
    ],
)
def test_a_wish_for_an_overview_goes_through_the_tree(question: str, tools: list[str]) -> None:
    names = ("search", "search_tree", "summarise")
    specs = [ToolSpec(name=name, base=name, purpose="Find.") for name in names]
    rules = RulesReasoner(Settings(), weights_of([]), FakeEmbedder())
    made = rules.plan(rules.understand(question, []), specs)
    assert [call.tool for call in made.questions[0].calls] == tools
