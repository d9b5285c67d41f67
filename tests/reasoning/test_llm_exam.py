"""The exam of a chat model: sound items, kept results, which decisions it leaves to the model."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from chat_doubles import SCRIPTED, scripted_chat
from llm_doubles import ScriptedModel

from core.fields.chat import DECISIONS
from core.settings import Settings
from models.chat.types import ModelTimeout, ModelUnavailable
from reasoning.llm.exam import JUDGES, Examiner, exam_items, in_turns
from reasoning.llm.exam_result import (
    ExamResult,
    ItemResult,
    decided_by_model,
    items_version,
    keep_result,
    kept_result,
)

OF = {"answer": 4, "plan": 2}


def model_of(*replies: object, digest: str = "a1") -> ScriptedModel:
    model = ScriptedModel(*replies)  # type: ignore[arg-type]
    model.capabilities = model.capabilities.model_copy(update={"digest": digest})
    return model


def result_of(
    *items: ItemResult, digest: str = "a1", url: str = "", model: str = "m"
) -> ExamResult:
    given = {"version": items_version(), "of": OF, "items": list(items)}
    return ExamResult(digest=digest, model=model, url=url, **given)  # type: ignore[arg-type]


def item(decision: str, *, right: bool, rules: bool, seconds: float = 1.0) -> ItemResult:
    return ItemResult(decision=decision, right=right, rules=rules, seconds=seconds, tokens=100)


def test_the_items_are_sound() -> None:
    items = exam_items()
    assert len(items.items) == 80
    assert {one.language for one in items.items} == {"en", "ru", "uk", "zh"}
    assert {one.decision for one in items.items} == set(JUDGES) == set(DECISIONS)
    for one in items.items:
        assert set(one.passages) <= set(items.passages)
        assert not one.tool or one.tool in items.tools
        held = " ".join(items.passages[name] for name in one.passages)
        if one.decision == "extract":
            assert one.holds(held), one.question
        assert one.null or one.answers or one.any or one.parts or one.tool or one.passages


def test_the_rules_can_take_the_exam() -> None:
    """No item is one that nobody can get right, nor are all so easy that a model could not win."""
    examiner = Examiner(model_of(), Settings(), None)
    right = [JUDGES[one.decision](one, examiner._rules) for one in exam_items().items]
    assert 20 < sum(right) < 70


def test_every_beginning_holds_each_decision() -> None:
    first = in_turns(exam_items().items)[:40]
    counts = {name: sum(one.decision == name for one in first) for name in DECISIONS}
    whole = {name: sum(one.decision == name for one in exam_items().items) for name in DECISIONS}
    assert all(abs(2 * counts[name] - whole[name]) <= 2 for name in DECISIONS)
    assert sum(one.null for one in first) == 6


def test_an_exam_that_is_stopped_goes_on(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    model = model_of(*["nonsense"] * 300)
    until = time.monotonic() + 60
    told: list[int] = []
    assert Examiner(model, settings, None).run(0.0, lambda _: None).items == []

    def stop(result: ExamResult) -> None:
        told.append(len(result.items))
        if len(result.items) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Examiner(model, settings, None).run(until, stop)
    kept = kept_result(settings, "a1")
    assert kept is not None and len(kept.items) == 5 and not kept.finished
    asked = len(model.requests)
    done = Examiner(model, settings, None).run(until, lambda result: told.append(len(result.items)))
    assert done.finished and told == list(range(1, 81))
    assert len(model.requests) > asked
    asked = len(model.requests)
    assert Examiner(model, settings, None).run(until, lambda _: None) == done
    assert len(model.requests) == asked  # a finished one is returned at once


def test_a_model_that_writes_nonsense_decides_nothing(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    model = model_of(*["nonsense"] * 300)
    Examiner(model, settings, None).run(time.monotonic() + 60, lambda _: None)
    assert decided_by_model(settings, model.capabilities) == (frozenset(), "")


def test_a_model_that_does_not_answer_in_time_decides_nothing(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    model = model_of(*[ModelTimeout("too slow")] * 300)
    Examiner(model, settings, None).run(time.monotonic() + 60, lambda _: None)
    assert decided_by_model(settings, model.capabilities)[0] == frozenset()


def test_a_server_that_dies_says_nothing_of_the_model(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    replies = ["nonsense"] * 12 + [ModelUnavailable("gone")] * 9
    chat = scripted_chat(replies, SCRIPTED.model_copy(update={"digest": "a1"}))
    with pytest.raises(ModelUnavailable, match="goes on"):
        Examiner(chat, settings, None).run(time.monotonic() + 60, lambda _: None)
    kept = kept_result(settings, "a1")
    assert kept is not None and 0 < len(kept.items) <= 12


def test_only_what_beats_the_rules_in_time_is_the_models() -> None:
    better = [item("answer", right=True, rules=n > 1, seconds=6) for n in range(4)]
    alike = [item("plan", right=True, rules=True) for _ in range(2)]
    found = result_of(*better, *alike).decisions(10)
    assert [name for name, one in found.items() if one.chosen] == ["answer"]
    assert (found["answer"].right, found["answer"].rules, found["answer"].tokens) == (4, 2, 100)
    assert not result_of(*better).decisions(5)["answer"].chosen  # too slow
    worse = item("answer", right=False, rules=True)
    assert result_of(worse).decisions(10)["answer"].chosen  # one of four says too little
    assert not result_of(worse, worse).decisions(10)["answer"].chosen
    wins = [item("plan", right=True, rules=False, seconds=5) for _ in range(2)]
    both = result_of(*better, *wins)
    assert [name for name, one in both.decisions(10).items() if one.chosen] == ["answer"]
    assert both.decisions(11)["plan"].chosen


def test_before_an_exam_a_model_answers_and_no_more(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    assert decided_by_model(settings, model_of().capabilities) == (frozenset({"answer"}), "")


def test_an_exam_is_void_for_another_model_at_the_same_address(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    wins = [item("plan", right=True, rules=False)] * 2
    keep_result(settings, result_of(*wins, url=settings.llm.url, model="old"))
    assert decided_by_model(settings, model_of().capabilities)[0] == frozenset({"answer", "plan"})
    decisions, warning = decided_by_model(settings, model_of(digest="b2").capabilities)
    assert decisions == frozenset({"answer"})
    assert "old" in warning and "carrel llm exam" in warning


def test_other_items_make_another_exam(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    keep_result(settings, result_of().model_copy(update={"version": "older"}))
    assert kept_result(settings, "a1") is None
