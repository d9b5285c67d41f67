"""Answers measured: containment, citations, refusals, what a run spent, and paired differences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallerError
from core.settings import Settings
from evals.answers import (
    AnswerOutcome,
    compared,
    contains_answer,
    evaluate_answers,
    figures,
    folded,
    judged_answers,
    question_rows,
    spent,
    stop_reasons,
)
from evals.dataset import JudgedQuery, read_dataset, read_queries

SETTINGS = Settings(eval_resamples=200)


def quiet(stage: str, done: int, total: int) -> None:
    assert done >= 0


@pytest.mark.parametrize(
    ("gold", "said", "found"),
    [
        ("Saxon Garden", "It stood in the SAXON garden.", True),
        ("Saxon Garden", "It stood in the Saxon-Garden.", True),
        ("art", "A party was held.", False),
        ("US", "Because of that.", False),
        ("2", "It opened in 1992.", False),
        ("2", "It has 2 doors.", True),
        ("1000", "It cost 1,000 coins.", True),
        ("3", "It weighs 3.5 kg.", False),
        ("15%", "About 15 % of them.", True),
        ("Київ", "Столиця — Київ.", True),
        ("Киев", "Киевский вокзал.", False),
        ("伊朗", "他于1979年离开伊朗的首都。", True),
        ("1979", "他于1979年离开。", True),
        ("97", "他于1979年离开。", False),
        ("Ⅳ", "Henry IV ruled.", True),
        ("…", "Anything … at all.", False),
    ],
)
def test_a_gold_answer_is_found_as_whole_words(gold: str, said: str, found: bool) -> None:
    assert contains_answer([gold], [said]) is found


def test_any_answer_in_any_sentence_is_enough_but_never_across_two() -> None:
    assert contains_answer(["Hall", "Stanley Hall"], ["nobody", "it was Hall"])
    assert not contains_answer(["Stanley Hall"], ["it was Stanley", "Hall came later"])
    assert not contains_answer([], ["anything"])
    assert not contains_answer(["Hall"], [])


def test_yes_and_no_are_not_judged_though_other_spellings_are() -> None:
    assert judged_answers(["Yes", "no.", "Нет", "是", " … "]) == []
    assert judged_answers(["Norway", "NO", "no"]) == ["Norway"]


@given(st.text(min_size=1), st.text(), st.text())
def test_what_stands_alone_in_a_sentence_is_contained(gold: str, before: str, after: str) -> None:
    said = f"{before} | {gold} | {after}"
    assert contains_answer([gold], [said]) is bool(folded(gold))


@given(st.text())
def test_folding_is_done_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def asked(
    name: str = "q",
    *,
    gold: tuple[str, ...] = (),
    answers: tuple[str, ...] = (),
    cites: tuple[str, ...] = (),
    text: str = "The owl hunts.",
    kind: str = "",
    ms: float = 10.0,
    **result: Any,
) -> AnswerOutcome:
    query = JudgedQuery(name, "?", dict.fromkeys(gold, 1), type=kind, answers=answers)
    citations = [{"document_id": one, "quote": f"Quoted from {one}."} for one in cites]
    made = {
        "claims": [{"text": text, "citations": citations}] if cites else [],
        "refused": not cites,
        "stop_reason": "enough_evidence" if cites else "no_relevant_evidence",
        "usage": {"tool_calls": 2, "tokens": 100, "model_calls": 0, "cost": 0.0, "degraded": 0},
        **result,
    }
    return AnswerOutcome(query, "en", ms, made)


def test_shares_count_only_the_questions_that_can_have_them() -> None:
    runs = [
        asked(gold=("a", "b"), answers=("owl",), cites=("a", "c")),
        asked(gold=("a",), answers=("yes",), cites=("a",)),
        asked(gold=("a",), answers=("walrus",)),
        asked(),
        asked(cites=("a",)),
    ]
    found = figures(runs, SETTINGS)
    assert found["n"] == 5
    assert found["metrics"] == {
        "answered": 0.6,
        "refused": 0.4,
        "refused_rightly": 0.5,
        "any_gold_cited": pytest.approx(2 / 3, abs=1e-6),
        "all_gold_cited": pytest.approx(1 / 3, abs=1e-6),
        "citation_precision": 0.75,
        "answer_contained": 0.5,
    }
    assert found["counts"] == {
        "answered": 5,
        "refused": 5,
        "refused_rightly": 2,
        "any_gold_cited": 3,
        "all_gold_cited": 3,
        "citation_precision": 2,
        "answer_contained": 2,
    }
    low, high = found["ci"]["answered"]
    assert low <= 0.6 <= high


def test_a_figure_that_no_question_has_is_none() -> None:
    found = figures([asked()], SETTINGS)
    assert found["metrics"]["any_gold_cited"] is None
    assert found["ci"]["any_gold_cited"] is None
    assert found["counts"]["any_gold_cited"] == 0


def test_an_answer_may_stand_in_the_quote_alone() -> None:
    (row,) = question_rows([asked(gold=("a",), answers=("quoted from a",), cites=("a",))])
    assert row["contained"] is True


def test_operations_are_those_of_the_plan_where_a_run_tells_one() -> None:
    plan = {"questions": [], "operations": [{"op": "RETRIEVE"}, {"op": "SYNTHESIZE"}]}
    runs = [asked(plan=plan), asked(plan={"operations": [{}] * 6}), asked(), asked(plan=None)]
    assert [one.operations for one in runs] == [2, 6, None, None]
    assert spent(runs)["operations"]["p50"] == 4
    assert spent(runs)["tool_calls"] == {"mean": 2, "p50": 2, "p95": 2}
    assert spent([asked()])["operations"] is None


def test_a_question_that_was_not_accepted_is_a_refusal_that_spent_nothing() -> None:
    lost = AnswerOutcome(JudgedQuery("q", "?", {"a": 1}), "en", breaks="a rule")
    assert figures([lost], SETTINGS)["metrics"]["any_gold_cited"] == 0.0
    assert stop_reasons([lost]) == {"not_accepted": 1}
    assert spent([lost]) == dict.fromkeys(
        ("tool_calls", "tokens", "model_calls", "cost", "operations")
    )
    (row,) = question_rows([lost])
    assert (row["answered"], row["ms"]) == (False, None)


def test_differences_are_over_the_questions_that_both_have() -> None:
    first = [asked(gold=("a",), cites=("a",)), asked(gold=("a",), cites=("a", "b"), ms=30.0)]
    second = [asked(gold=("a",)), asked(gold=("a",), cites=("a",))]
    found = compared(first, second, SETTINGS)
    assert found["answered"].mean == 0.5
    assert (found["citation_precision"].mean, found["citation_precision"].losses) == (-0.5, 1)
    assert found["latency_ms"].mean == 10.0
    assert "answer_contained" not in found


METADATA = {
    "q1": {"type": "2hop", "answer": ["mice", "voles"]},
    "q2": {"type": "3hop1", "answer": "yes"},
    "q3": {"type": "2hop", "answer": 7},
    "q4": {"type": "unanswerable", "answer": None},
}


def test_gold_answers_are_read_as_texts(dataset) -> None:
    metadata = {**METADATA, "q4": {"answer": {"a": "table"}}, "q2": {"answer": True}}
    found = {query.query_id: query.answers for query in read_queries(dataset(metadata=metadata))}
    assert found == {"q1": ("mice", "voles"), "q2": (), "q3": ("7",), "q4": ()}


def test_all_queries_are_asked_in_the_order_of_the_file(dataset) -> None:
    folder = dataset(queries={"q4": "nobody judged this", "q1": "owl", "q2": "walrus"})
    found = read_dataset(folder, judged_only=False, limit=2)
    assert [query.query_id for query in found.queries] == ["q4", "q1"]
    assert [query.query_id for query in found.unused] == ["q2"]


@pytest.mark.parametrize("pipeline", ["auto", "agentic", "classic"])
def test_every_pipeline_answers_from_the_documents(dataset, settings, pipeline) -> None:
    queries = {
        "q1": "What does the owl hunt at night?",
        "q2": "Where does the walrus sleep?",
        "q3": "What draws melted wax up the wick?",
        "q4": "Who invented the telephone exchange of Budapest?",
    }
    found = read_dataset(dataset(queries=queries, metadata=METADATA), judged_only=False)
    result = evaluate_answers(found, pipeline, settings, quiet)
    assert (result["dataset"], result["pipeline"], result["n"]) == ("tiny", pipeline, 4)
    assert result["metrics"]["refused_rightly"] == 1.0
    assert result["metrics"]["any_gold_cited"] >= 2 / 3 - 1e-6
    assert result["by_type"]["2hop"]["n"] == 2
    assert result["latency_ms"]["p50"] > 0
    assert result["spent"]["tool_calls"]["mean"] >= 1
    rows = {row["id"]: row for row in result["questions"]}
    assert list(rows) == list(queries)
    assert rows["q1"]["contained"] is True
    assert rows["q2"]["contained"] is None
    assert rows["q4"]["answered"] is False
    assert sum(result["stop_reasons"].values()) == 4


def test_a_question_that_is_not_accepted_is_told(dataset, settings) -> None:
    queries = {"q1": "What does the owl hunt at night?", "q2": "walrus " * 5000}
    folder = dataset(queries=queries, qrels=[("q1", "owl", 1), ("q2", "walrus", 1)])
    result = evaluate_answers(read_dataset(folder, judged_only=False), "agentic", settings, quiet)
    assert result["metrics"]["answered"] == 0.5
    assert result["stop_reasons"]["not_accepted"] == 1
    assert "does not accept" in result["warnings"][0]
    assert "q2 (a question has at most" in result["warnings"][0]


@pytest.mark.parametrize(
    ("pipeline", "against"), [("hybrid", None), ("auto", "hybrid"), ("classic", "classic")]
)
def test_pipelines_that_cannot_answer(dataset, settings, pipeline, against) -> None:
    found = read_dataset(dataset())
    with pytest.raises(CallerError) as caught:
        evaluate_answers(found, pipeline, settings, quiet, against=against)
    assert caught.value.exit_code == 2
    assert not settings.cache.exists(), "nothing is ingested before the names are checked"
