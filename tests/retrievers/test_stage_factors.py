"""The corrections of the ranking, each by itself, and the versions they compare."""

from __future__ import annotations

import pytest
from fakes import FakeEmbedder
from stage_builders import ANN, hit, ids, searched

from core.fields.retrieval import FACTOR_AMOUNTS
from retrievers.factors import code_share, factors, is_index_page
from retrievers.versions import asked_versions, version_distance, version_notes

AMOUNTS = "selection.factor_amounts"
CODE = "import os\nx = os.getcwd()\nprint(x)"
CONTENTS = "\n".join(f"{n}. Chapter about things ..... {n * 7}" for n in range(1, 12))


def added(index, question: str, *evidence) -> dict[str, float]:
    after, _ = factors(searched(index(), question), list(evidence))
    return {item.chunk_id: item.scores.get("factors", 0.0) for item in after}


@pytest.mark.parametrize(
    ("asked", "declared", "distance"),
    [
        ("2.1", "2.1", "exact"),
        ("2.1", "v2.1.3", "exact"),
        ("2.1.3", "2.1", "exact"),
        ("2.1", "2.1.x", "exact"),
        ("2.1", "2.1rc1", "exact"),
        ("2.1", "2.2", "near"),
        ("2.1.1", "2.1.7", "near"),
        ("2.1", "2.10", "far"),
        ("1.9", "2.0", "far"),
        ("17", "18", "near"),
        ("17", "20", "far"),
        ("latest", "Latest", "exact"),
        ("2.1", "latest", None),
    ],
)
def test_versions_are_compared_by_their_numbers(asked, declared, distance) -> None:
    assert version_distance(asked, declared) == distance


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What changed in 2.1?", "2.1"),
        ("How does scan work in version 3", "3"),
        ("What is new in v2.4.1?", "2.4.1"),
        ("Is there a timeout in 2.7 for calls?", "2.7"),  # "for" cannot be counted
        ("Is there a timeout in 2.7 minutes?", ""),
        ("Что нового в версии 2.4?", "2.4"),
        ("Що нового у 2.4?", "2.4"),
        ("2.4 版本有什么变化?", "2.4"),
        ("How do I use gizmo 2.3?", "2.3"),
        ("Does gizmo 2.2 run here", "2.2"),
        ("Did it take 3.5 seconds?", ""),
        ("Did prices rise by 2.2%?", ""),
        ("What happened in 1990?", ""),
        ("Is gizmo 30 seconds late?", ""),
        ("Where is the harbour?", ""),
    ],
)
def test_the_version_that_a_question_asks_about(index, question, asked) -> None:
    evidence = [hit("a", version="2.2", title="Gizmo guide"), hit("b")]
    assert asked_versions(searched(index(), question), evidence) == asked.split()


def test_without_documents_of_versions_a_decimal_is_a_number(index) -> None:
    assert asked_versions(searched(index(), "What is in 2.1?"), [hit("a")]) == []


def test_the_policy_of_the_caller_asks_when_the_question_does_not(index) -> None:
    confined = ANN.model_copy(update={"version_policy": "2.0"})
    assert asked_versions(searched(index(), "harbour?", auth=confined), []) == ["2.0"]
    assert asked_versions(searched(index(), "harbour in v3?", auth=confined), []) == ["3"]


def test_the_version_asked_for_comes_first(index) -> None:
    evidence = [
        hit("far", score=0.6, version="1.0"),
        hit("near", score=0.6, version="2.2"),
        hit("none", score=0.6),
        hit("exact", score=0.5, version="2.1.1"),
    ]
    after, note = factors(searched(index(), "What changed in 2.1?"), evidence)
    assert ids(after) == ["exact", "none", "near", "far"]
    assert [item.score for item in after] == pytest.approx([0.65, 0.6, 0.55, 0.4])
    assert note == "version 2.1 far: 1, version 2.1 near: 1, version 2.1 exact: 1"


def test_warnings_about_other_and_deprecated_versions(index) -> None:
    evidence = [
        hit("a", version="2.1"),
        hit("b", version="1.0", metadata={"deprecated": True}),
        hit("c", version="2.2", metadata={"status": "Archived"}),
        hit("d", metadata={"status": "current", "deprecated": False}),
    ]
    assert version_notes(searched(index(), "what changed in 2.1?"), evidence) == [
        "asked about version 2.1, but found version 1.0 (1), 2.2 (1)",
        "deprecated: b.md, c.md",
    ]
    assert version_notes(searched(index(), "harbour?"), evidence[:1]) == []


@pytest.mark.parametrize(
    ("text", "share"),
    [
        (CODE, 1.0),
        ("```\nanything\n```", 1.0),
        ("Prose is here.\n" + CODE, 0.75),
        ("public health matters;\nlet us return the book\nfunction words", 0.0),
        ("", 0.0),
    ],
)
def test_the_share_of_code(text, share) -> None:
    item = hit("a").model_copy(update={"text": text})
    assert code_share(item) == share
    assert code_share(item.model_copy(update={"kind": "code"})) == 1.0


@pytest.mark.parametrize(
    ("question", "amount"),
    [
        ("How to print the folder?", 0.05),
        ("What does os.getcwd do", 0.10),  # the name is there, too
        ("Как создать папку?", 0.05),
        ("Where is the harbour?", -0.03),
    ],
)
def test_code_is_preferred_when_it_is_asked_for(index, question, amount) -> None:
    amounts = added(index, question, hit("code", CODE), hit("prose", "A folder is a place."))
    assert amounts == pytest.approx({"code": amount, "prose": 0.0})


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (CONTENTS, True),
        ("\n".join(["* Home", "* About us", "* Contact"] * 4), True),
        ("\n".join(["第一章 港口的历史", "第二章 城市"] * 5), True),
        ("\n".join(["Home", "About"] * 2), False),
        ("\n".join(["The harbour is open."] * 12), False),
        ("\n".join(f"field {n}: value" for n in range(12)), False),
        ("\n".join(["x = 1", "print(x)"] * 6), False),
        ("\n".join(["word " * 30] * 12), False),
    ],
)
def test_lists_of_links_are_known_by_their_shape(text, listed) -> None:
    assert is_index_page(hit("a", text)) is listed


def test_index_pages_sink(index) -> None:
    after, note = factors(
        searched(index()), [hit("list", CONTENTS, 0.6), hit("text", "The harbour.", 0.55)]
    )
    assert ids(after) == ["text", "list"]
    assert note == "index page: 1"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Call scan_all here.", 0.05),
        ("Call scan_all() here.", 0.05),
        ("Call scan_all2 here.", 0.0),
        ("Call mod.scan_all here.", 0.0),
        ("Call Scan_All here.", 0.0),
    ],
)
def test_an_api_name_counts_when_it_is_there_exactly(index, text, amount) -> None:
    asked = "what does scan_all() do"
    assert added(index, asked, hit("a", text))["a"] == pytest.approx(amount)
    above = hit("a", "It scans.", section=f"Tools › {text}")  # a section about it
    assert added(index, asked, above)["a"] == pytest.approx(2 * amount)


def test_what_defines_a_name_goes_before_what_mentions_it(index) -> None:
    own = hit("own", "Scan it.", section="mod › mod.scan_all(path)")
    other = hit("other", "Scan it.", section="mod › mod.scan_all2")
    for asked in ("scan_all", "what does scan_all() do"):
        values = added(index, asked, own, other)
        assert values["own"] > 0.25 and values["other"] < 0.1
    assert added(index, "what does a scan do", own)["own"] < 0.25


def test_a_profile_sets_other_versions_back_only_where_the_right_one_is(index) -> None:
    made = index(**{AMOUNTS: ["version_far=-0.8"]})
    evidence = [hit("old", version="1.0"), hit("new", version="2.1")]
    asked = searched(made, "How is it in version 2.1?")
    after, _ = factors(asked, evidence)
    assert [item.scores["factors"] for item in after] == [0.15, -0.8]
    after, _ = factors(asked, evidence[:1])
    assert after[0].scores["factors"] == -0.2


def test_nothing_is_added_but_by_the_amounts(index) -> None:
    none = index(**{AMOUNTS: [f"{name}=0" for name in FACTOR_AMOUNTS]})
    evidence = [hit("a", CONTENTS, version="1.0"), hit("b", CODE, version="2.1")]
    assert factors(searched(none, "how to use os.getcwd in 2.1"), evidence) == (evidence, "")


@pytest.mark.parametrize(
    ("query", "title", "keywords", "share"),
    [
        ("Harbour pilots", "Harbour Pilots", [], 1),
        ("the pilots of the harbour", "Harbour Pilots", [], 1),
        ("harbour pilots", "Rules", ["cranes", "harbour pilot"], 1),
        ("harbour pilots", "Harbour pilots of the north", [], 0),
        ("harbour pilots in winter storms", "Harbour Pilots", [], 1 / 2),
        ("harbour pilots", "Rules", ["harbour", "pilots"], 1 / 2),
        ("of the", "", [], 0),
    ],
)
def test_what_is_filed_under_words_of_the_query_gains_by_their_share(
    index, query: str, title: str, keywords: list[str], share: float
) -> None:
    """In an empty collection all words are equally rare."""
    filed = hit("a", "Some text.", 0.2, title=title, metadata={"keywords": keywords})
    after, note = factors(searched(index(), query), [filed])
    gain = FACTOR_AMOUNTS["heading"] * share
    assert after[0].score - 0.2 == pytest.approx(gain)
    assert ("heading" in note) is bool(share)


def test_the_name_of_a_framework_is_no_sign_of_what_is_asked_of_it(index) -> None:
    kite = {"framework": "Kite"}
    evidence = [
        hit("home", "Some text.", title="Kite", metadata=kite),
        hit("page", "Some text.", title="Reels", metadata=kite),
    ]
    after, _ = factors(searched(index(), "reels of Kite"), evidence)
    assert [(item.chunk_id, "factors: heading" in item.scores) for item in after] == [
        ("page", True),
        ("home", False),
    ]
    after, _ = factors(searched(index(), "Kite"), evidence)
    assert after[0].chunk_id == "home"


def test_titles_and_beginnings_count_where_a_profile_says_so(index) -> None:
    evidence = [
        hit("a", "Text.", title="Harbour pilots", ordinal=0),
        hit("b", "Text.", title="Pilots of the air", ordinal=3),
    ]
    made = index(**{AMOUNTS: ["title=0.2", "opening=0.1", "heading=0"]})
    question = "who pays the harbour pilots today"
    after, _ = factors(searched(made, question), evidence)
    found = {item.chunk_id: item.scores for item in after}
    assert found["a"]["factors: opening"] == pytest.approx(0.1)
    assert found["a"]["factors: title"] == pytest.approx(2 * found["b"]["factors: title"])
    assert "factors: opening" not in found["b"]
    after, _ = factors(searched(made, "what does harbour.pilots() do"), evidence)
    assert not any("factors: opening" in item.scores for item in after)


def test_paths_count_and_far_hits_without_a_word_go_where_a_profile_says_so(index) -> None:
    evidence = [
        hit("far", scores={"vector": 0.0}),
        hit("worded", scores={"vector": 0.0, "text": 3.0}),
        hit("near", source="docs/harbour_pilots.md", scores={"vector": 0.99}),
    ]
    vector = FakeEmbedder().embed_query("harbour pilots")
    made = index(**{AMOUNTS: ["path=0.2", "cut=0.8", "heading=0"]})
    after, note = factors(searched(made, "harbour pilots", vector=vector), evidence)
    assert ids(after) == ["near", "worded"]
    assert after[0].scores["factors: path"] == pytest.approx(0.2)
    assert "dropped as too far: 1" in note


def test_the_older_of_two_versions_goes_behind_where_none_is_asked_for(index) -> None:
    evidence = [
        hit("old", title="Winch", version="1.9"),
        hit("new", title="Winch", version="1.10"),
        hit("other", title="Sail", version="1.0"),
        hit("odd", title="Winch", version="first"),
    ]
    after, note = factors(searched(index(), "how is it wound"), evidence)
    assert [item.chunk_id for item in after][-1] == "old"
    assert "older version: 1" in note
    after, note = factors(searched(index(), "how is it wound in version 1.9"), evidence)
    assert after[0].chunk_id == "old"
    assert "older" not in note


def test_a_page_that_fits_all_over_goes_before_a_passing_mention(index) -> None:
    evidence = [
        hit("mention", score=0.80, document_key="x"),
        hit("about", score=0.78, document_key="y"),
        hit("about-2", score=0.70, document_key="y"),
        hit("mention-2", score=0.10, document_key="x"),
    ]
    made = index(**{AMOUNTS: ["page=0.4"]})
    after, _ = factors(searched(made, "anything"), evidence)
    assert after[0].chunk_id == "about"
    assert after[0].scores["factors: page"] == pytest.approx(0.4 * 0.74)


@pytest.mark.parametrize("given", ["title", "title=x", "title=2", "nothing=0.1", "title=0.1e9"])
def test_an_amount_that_is_none_is_refused(index, given: str) -> None:
    with pytest.raises(ValueError, match="NAME=AMOUNT"):
        index(**{AMOUNTS: [given]})


def test_each_of_several_versions_that_are_named_is_the_right_one(index) -> None:
    evidence = [
        hit("other", score=0.6, version="3.7"),
        hit("first", score=0.5, version="2.1"),
        hit("second", score=0.4, version="2.5"),
    ]
    question = "What differs between version 2.1 and version 2.5?"
    after, _ = factors(searched(index(), question), evidence)
    assert ids(after) == ["first", "second", "other"]
    assert version_notes(searched(index(), question), evidence[1:]) == []
