"""What the model made of a question is remembered for its caller, and checked again when taken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import weights_for
from llm_doubles import ScriptedModel, purse, tool
from test_llm_decisions import QUESTION, known, understood

from core.budget import Ledger, opened_ledger
from core.cache import Cache, local_cache
from core.fields.chat import DECISIONS
from core.settings import Settings
from models.chat.types import ModelUnavailable
from reasoning.llm.deciding import REMEMBERED
from reasoning.llm.reasoner import LlmReasoner
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn

GOOD = understood(
    QUESTION,
    ("What is the maximum timeout of the refund API?", "number"),
    ("Who maintains the refund service?", "person"),
)
OTHER = understood("Which birds sing in the morning?", ("Which birds sing?", "text"))
TOOLS = [tool("search_api", "API reference.")]


def purse_of(owner: str) -> Ledger:
    return replace(purse(), owner=owner)


def reasoner_of(
    cache: Cache, *replies: object, **settings: object
) -> tuple[LlmReasoner, ScriptedModel]:
    model = ScriptedModel(*replies)
    given = Settings(**settings)  # type: ignore[arg-type]
    rules = RulesReasoner(given, weights_for([]), None)
    return LlmReasoner(model, rules, given, None, frozenset(DECISIONS), cache), model


@pytest.fixture
def cache() -> Cache:
    return local_cache("rewrites", 16)


def test_the_model_is_asked_once_an_hour_by_each_caller(cache: Cache) -> None:
    reasoner, model = reasoner_of(cache, GOOD, GOOD)
    made = []
    for owner in ("ann", "ann", "bob"):
        with opened_ledger(purse_of(owner)) as ledger:
            made.append(reasoner.understand(QUESTION, []))
            assert ledger.degraded == []
    assert made[0] == made[1] == made[2]
    assert model.verbs == ["understand"] * 2
    assert (cache.hits, cache.misses) == (1, 2)


def test_another_history_setting_or_unknown_caller_asks_again(cache: Cache) -> None:
    reasoner, _ = reasoner_of(cache, GOOD)
    with opened_ledger(purse_of("ann")):
        reasoner.understand(QUESTION, [])
    with opened_ledger(purse_of("ann")):
        again, model = reasoner_of(cache, GOOD)
        again.understand(QUESTION, [Turn("What is XPay?", "A payment service.")])
        assert model.verbs == ["understand"]
        fewer, model = reasoner_of(cache, GOOD, max_sub_questions=2)
        fewer.understand(QUESTION, [])
        assert model.verbs == ["understand"]
    for _ in range(2):
        nobody, model = reasoner_of(cache, GOOD)
        with opened_ledger(purse()):
            nobody.understand(QUESTION, [])
        assert model.verbs == ["understand"]


def test_what_the_rules_had_to_decide_is_not_remembered(cache: Cache) -> None:
    for failing in (["no JSON at all"] * 9, [ModelUnavailable("nobody is there")], [OTHER] * 9):
        reasoner, model = reasoner_of(cache, *failing)
        with opened_ledger(purse_of("ann")) as ledger:
            reasoner.understand(QUESTION, [])
        assert ledger.degraded
        assert model.verbs
    assert cache.entries == 0


def test_a_repaired_reply_is_remembered_as_it_was_accepted(cache: Cache) -> None:
    reasoner, model = reasoner_of(cache, "no JSON at all", GOOD)
    for _ in range(2):
        with opened_ledger(purse_of("ann")) as ledger:
            assert len(reasoner.understand(QUESTION, []).parts) == 2
    assert model.verbs == ["understand"] * 2
    assert ledger.calls == []  # none was made


def test_what_is_remembered_is_checked_like_any_reply(cache: Cache) -> None:
    reasoner, model = reasoner_of(cache, GOOD, GOOD)
    with opened_ledger(purse_of("ann")):
        expected = reasoner.understand(QUESTION, [])
        cache.get = lambda key: b'{"standalone": "Which birds sing?"}'  # type: ignore[method-assign]
        assert reasoner.understand(QUESTION, []) == expected
    assert model.verbs == ["understand"] * 2


def test_grades_and_answers_are_made_anew(cache: Cache) -> None:
    reasoner, model = reasoner_of(
        cache,
        {
            "questions": [
                {"id": "q1", "text": "How long?", "tools": ["search_api"], "query": "long"}
            ]
        },
    )
    for _ in range(2):
        with opened_ledger(purse_of("ann")):
            reasoner.plan(known("How long?").model_copy(update={"kind": "multi"}), TOOLS)
    assert model.verbs == ["plan"]
    reasoner, model = reasoner_of(cache, "A", "A")
    for _ in range(2):  # its likelihoods would be lost
        with opened_ledger(purse_of("ann")):
            reasoner.plan(known("How long?"), [*TOOLS, tool("find_service")])
    assert model.verbs == ["plan"] * 2
    assert not REMEMBERED & {"grade", "extract", "answer", "supports"}
