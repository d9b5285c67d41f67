"""Following names: what a hit names is found, and never through what a caller may not see."""

from __future__ import annotations

import pytest
from fakes import FakeEmbedder, document, write
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_builders import ANN
from tiers import examples

from core.auth import AuthContext
from core.settings import Settings
from core.types import Evidence
from retrievers.fusion import TEXT, VECTOR
from retrievers.hybrid import LINKS, MAX_NAMES, hybrid_search, names_in, title_names
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query, RetrievalResult
from stores.store import Store

BOSS = AuthContext(tenant="acme", roles=frozenset({"boss"}))
QUESTION = "Which university did the author of the novel The Quiet Harbour attend?"
FIRST = "The Quiet Harbour is a novel; its author is Judith Marlow."
SECOND = "After school Judith Marlow went to the university of the north."
WORDS = {"weight_vector": 0.01}  # the fake embedder knows no meaning
OTHERS = [
    "Every university has an author who did attend.",
    "An author may attend a course.",
    "The university opened a reading room.",
    "Frogs live near water and eat insects.",
    "A train leaves at noon.",
]


def fill(index: Index, first: str = FIRST, second: str = SECOND, hidden: str = "") -> None:
    """Write both passages and others; the one named by `hidden` is for bosses."""
    texts = {"first": first, "second": second, **{f"o{n}": text for n, text in enumerate(OTHERS)}}
    rows = [
        document(index.collection, name, text, acl=["boss"] if name == hidden else [])
        for name, text in texts.items()
    ]
    write(index.store, index.collection, rows, index.embedder)


def found(
    index: Index, question: str = QUESTION, auth: AuthContext = ANN, **how: bool
) -> RetrievalResult:
    query = Query(question, auth, language="en")
    return hybrid_search(index, query, [VECTOR, TEXT], {VECTOR: 3, TEXT: 3}, 8, **how)


def names(found: RetrievalResult) -> list[str]:
    return [item.document_id for item in found.evidence]


def linked(found: RetrievalResult) -> dict[str, float]:
    return {e.document_id: e.scores[LINKS] for e in found.evidence if LINKS in e.scores}


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_passage_that_the_best_hit_names_is_found(index, seeds) -> None:
    where = index(**WORDS, links_seeds=seeds)
    fill(where)
    plain, with_links = found(where, links=False), found(where, links=True)
    assert names(plain)[0] == names(with_links)[0] == "first"
    assert names(with_links).index("second") < names(plain).index("second")
    assert 0 < linked(with_links)["second"] <= 1
    assert "first" not in linked(with_links) or seeds > 1
    step = next(step for step in with_links.stages if step.name == LINKS)
    assert "linked chunks" in step.note


def test_the_best_hit_stays_first_however_strong_the_links_are(index) -> None:
    where = index(**WORDS, links_weight=5.0)
    fill(where)
    plain, with_links = found(where, links=False), found(where, links=True)
    assert names(with_links)[:2] == [names(plain)[0], "second"]
    scores = [item.score for item in with_links.evidence]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (
            "В каком университете учился автор романа «Тихая гавань»?",
            "«Тихая гавань» — роман; его автор — писатель Пётр Марлов.",
            "После школы Пётр Марлов поступил в университете на севере.",
        ),
        (
            "《安静的港口》的作者在哪所大学学习?",
            "《安静的港口》是一部小说,作者著有《北方的灯塔》。",
            "《北方的灯塔》讲述了一所大学的故事。",
        ),
    ],
)
def test_names_are_followed_in_other_languages(index, question, first, second) -> None:
    where = index(**WORDS)
    language = "zh" if "港" in question else "ru"
    rows = [
        document(where.collection, "first", first, language=language),
        document(where.collection, "second", second, language=language),
        *(document(where.collection, f"o{n}", text) for n, text in enumerate(OTHERS)),
    ]
    write(where.store, where.collection, rows, where.embedder)
    assert "second" in linked(found(where, question, links=True))


def test_it_is_switched_by_the_setting_and_the_pipeline(index) -> None:
    off, on = index(**WORDS), index(**WORDS, channel_links=True)
    fill(off)
    assert linked(found(off)) == {} and linked(found(on))
    assert linked(found(on, links=False)) == {}
    query = Query(QUESTION, ANN, language="en")
    assert linked(run_pipeline(off, query, "linked", 8))
    assert not linked(run_pipeline(off, query, "hybrid", 8))
    for alone in ("vector", "keyword"):
        assert not linked(run_pipeline(on, query, alone, 8))


def test_two_runs_are_equal(index) -> None:
    where = index(**WORDS, channel_links=True)
    fill(where)
    assert found(where).evidence == found(where).evidence


def test_a_name_in_too_many_chunks_leads_nowhere(index) -> None:
    where = index(**WORDS)
    fill(where)
    more = [document(where.collection, f"hub{n}", f"Judith Marlow {n}") for n in range(3)]
    write(where.store, where.collection, more, where.embedder)
    result = found(where, links=True)
    assert linked(result) == {} and names(result) == names(found(where, links=False))


def test_what_the_question_itself_names_leads_nowhere(index) -> None:
    where = index(**WORDS)
    fill(where)
    assert linked(found(where, f"{QUESTION} By Judith Marlow.", links=True)) == {}


def test_a_chunk_without_what_the_hit_lacks_is_not_raised(index) -> None:
    where = index(**WORDS)
    fill(where, second="Judith Marlow likes cats.")
    assert linked(found(where, links=True)) == {}


def test_a_chunk_about_the_name_is(index) -> None:
    where = index(**WORDS)
    fill(where)
    about = document(where.collection, "about", "She likes cats.", title="Judith Marlow (writer)")
    write(where.store, where.collection, [about], where.embedder)
    assert linked(found(where, links=True))["about"] > 0


@pytest.mark.parametrize("text", ["", "?", "the", "frogs", "who is who"])
def test_a_question_without_names_in_its_hits_is_searched_as_before(index, text) -> None:
    where = index(**WORDS)
    fill(where, first="a novel", second="a school")
    assert names(found(where, text, links=True)) == names(found(where, text, links=False))


def test_an_empty_collection_has_no_links(index) -> None:
    assert found(index(), links=True).evidence == []


def test_nothing_is_followed_to_or_through_hidden_chunks(index) -> None:
    where = index(**WORDS)
    fill(where, hidden="first")
    assert linked(found(where, links=True)) == {}
    assert linked(found(where, auth=BOSS, links=True))["second"] > 0
    other = AuthContext(tenant="other")
    assert found(where, auth=other, links=True).evidence == []


def test_a_hidden_second_passage_is_not_found(index) -> None:
    where = index(**WORDS)
    fill(where, hidden="second")
    assert "second" not in names(found(where, links=True))
    assert "second" in names(found(where, auth=BOSS, links=True))


@given(hidden=st.sets(st.sampled_from([FIRST, SECOND, "Judith Marlow", *OTHERS])))
@settings(max_examples=examples(12))
def test_hidden_chunks_are_never_found_and_link_nothing(tmp_path_factory, hidden) -> None:
    opened = Settings(data=tmp_path_factory.mktemp("library"), **WORDS)
    with Store(opened, "fake", create=True) as store:
        collection = store.intake.open_collection("acme", "main", None)
        where = Index(store, collection, FakeEmbedder(), opened)
        fill(where, first="a novel")  # so that only hidden chunks say what the second passage says
        rows = [document(collection, f"h{n}", t, acl=["boss"]) for n, t in enumerate(hidden)]
        write(store, collection, rows, where.embedder)
        result = found(where, links=True)
    assert linked(result) == {} and not result.hidden
    assert not any(name.startswith("h") for name in names(result))


def test_a_title_goes_by_its_plain_form() -> None:
    def titled(title: str) -> set[str]:
        return {" ".join(name) for name in title_names(item("", title=title))}

    assert titled("Always (2011 film)") == {"alway 2011 film", "alway"}
    assert titled("Laie, Hawaii") == {"laie hawaii", "laie"}
    assert titled("") == titled("()") == set()


def test_names_are_those_of_the_text_but_its_title() -> None:
    text = "Ada Moor met Bela Quill. Ada Moor left."
    assert names_in(item(text, title="Ada Moor")) == [("bela", "quill")]
    many = ", ".join(f"Name{chr(65 + n % 26)}{chr(97 + n // 26)} Person" for n in range(200))
    assert len(names_in(item(f"They met {many}."))) <= MAX_NAMES
    assert names_in(item("")) == []


def item(text: str, title: str = "") -> Evidence:
    values = dict.fromkeys(("evidence_id", "chunk_id", "document_id", "document_key"), "a")
    return Evidence(**values, source="a.md", title=title, text=text, score=1.0, language="en")
