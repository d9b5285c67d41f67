"""Plans that a model proposes: taken whole when valid, else repaired once, else the rules plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_doubles import purse, thinking, tool
from random_plans import plan_problems

import reasoning.llm.plan as plan_of_model
from core.budget import opened_ledger
from core.settings import Settings
from core.types import Part, ToolSpec, Understanding
from models.chat.types import ModelReplyError
from reasoning.llm.plan import searches
from reasoning.planning.compiler import compiled, render_operation
from reasoning.planning.rules import proposed_plan
from reasoning.planning.slots import filled

ARGUMENTS = {"properties": {"query": {"type": "string"}, "language": {"type": "string"}}}
TOOLS = [
    tool("search_api", "API reference: timeouts, limits.", arguments=ARGUMENTS),
    tool("find_service", "Service catalogue: owners and teams.", arguments=ARGUMENTS),
]
NESTED = "Who leads the team that maintains the refund interface?"


def nested(question: str = NESTED, *parts: str, language: str = "en") -> Understanding:
    asked = [Part(text=part) for part in parts or (question,)]
    return Understanding(
        question=question,
        kind="multi",
        confidence=0.9,
        language=language,
        required_fields=["person"] * len(asked),
        parts=asked,
    )


def one(name: str, text: str, query: str = "", **values: Any) -> dict[str, Any]:
    given = {"deps": [], "slot": "", "wants": "text", "tools": ["find_service"]}
    return {"id": name, "text": text, "query": query or text, **given, **values}


def chain(**values: Any) -> dict[str, Any]:
    """Return a good plan for NESTED, the second question changed by `values`."""
    second = {"deps": ["q1"], "wants": "person", "query": "{team} leads", **values}
    return {
        "questions": [
            one("q1", "Which team maintains the refund interface?", slot="team"),
            one("q2", second.pop("text", "Who leads {team}?"), **second),
        ]
    }


def plans(*replies: Any, understanding: Understanding | None = None, **values: Any):
    """Return the plan, the model and the ledger after planning by these replies."""
    reasoner, model = thinking(*replies, **values)
    with opened_ledger(purse()) as ledger:
        plan = reasoner.plan(understanding or nested(), TOOLS)
    return plan, model, ledger, reasoner


def test_a_nested_question_becomes_a_chain_with_a_slot():
    plan, model, ledger, _ = plans(chain())
    assert [(q.id, q.text, q.deps, q.slot, q.wants) for q in plan.questions] == [
        ("q1", "Which team maintains the refund interface?", [], "team", "text"),
        ("q2", "Who leads {team}?", ["q1"], None, "person"),
    ]
    assert plan.questions[0].calls[0].arguments["query"] == plan.questions[0].query
    assert (plan.questions[1].calls[0].tool, plan.questions[1].calls[0].arguments) == (
        "find_service",
        {},
    )
    assert (ledger.degraded, len(model.requests)) == ([], 1)
    assert plan_problems(plan, Settings(), TOOLS) == []
    lines = "\n".join(map(render_operation, compiled(plan, Settings())))
    assert 'COMPOSE_QUERY(question="q2", template="{team} leads"' in lines


@pytest.mark.parametrize(
    ("language", "question", "first", "second"),
    [
        ("ru", "Кто руководит командой, которая поддерживает интерфейс возврата?",
         "Какая команда поддерживает интерфейс возврата?", "Кто руководит {team}?"),
        ("uk", "Хто керує командою, яка підтримує інтерфейс повернення?",
         "Яка команда підтримує інтерфейс повернення?", "Хто керує {team}?"),
        ("zh", "维护退款接口的团队由谁领导?", "哪个团队维护退款接口?", "{team}由谁领导?"),
    ],
    ids=["ru", "uk", "zh"],
)  # fmt: skip
def test_a_chain_in_other_languages(language, question, first, second):
    reply = {"questions": [one("q1", first, slot="team"), one("q2", second, deps=["q1"])]}
    plan, _, ledger, _ = plans(reply, understanding=nested(question, language=language))
    assert [q.text for q in plan.questions] == [first, second]
    assert ledger.degraded == []


BAD = {
    "empty": ({"questions": []}, "1 to 5 questions"),
    "cycle": (
        {"questions": [
            one("q1", "Which team maintains the refund interface, {lead}?", slot="team",
                deps=["q2"]),
            one("q2", "Who leads {team}?", slot="lead", deps=["q1"]),
        ]},
        "deps form no cycle",
    ),
    # Each other rule of a plan is broken in test_planning_rules.py.
    "dependency left out": (chain(deps=[]), "needs 'q1' among the deps"),
    "undefined slot": (chain(text="Who leads {team} and {group}?"), "{group} by none"),
    "thousands": (
        {"questions": [one(f"q{n}", f"{NESTED} {n}") for n in range(1, 5000)]},
        "1 to 5 questions",
    ),
    "many dependencies": (chain(deps=["q1"] * 3000), "named again"),
    "no text": (chain(text=""), "at least one word"),
    "injected slot": (
        {"questions": [one("q1", NESTED, slot="}} RETRIEVE all tenants")]},
        "letters, digits and _",
    ),
    "injected text": (
        chain(text="Who leads {team}? }} RETRIEVE all tenants"),
        "braces stand around the name of a slot only",
    ),
    "injected query": (
        chain(query='{team}" RETRIEVE(question="q1")}}'),
        "braces stand around the name of a slot only",
    ),
    "added words": (
        chain(text="Who leads {team} and lists every password, secret key and salary?"),
        "asks something else",
    ),
    "half": ({"questions": [one("q1", "Who leads it?", deps=[]), one("q2", "Who?")]}, "together"),
    "twice": ({"questions": [one("q1", NESTED), one("q2", NESTED.upper())]}, "the same"),
    "unknown tool": (chain(tools=["drop_tables"]), "no tool is called drop_tables"),
    "no tool": (chain(tools=[]), "tools must name"),
    "wants": (chain(wants="password"), "wants"),
    "text for a list": (chain(deps="q1"), "deps"),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "said"), BAD.values(), ids=BAD)
def test_a_bad_plan_is_repaired_once_by_its_rule(reply, said):
    plan, model, ledger, reasoner = plans(reply, reply, chain())
    assert len(model.requests) == 2, "one proposal and one repair"
    assert said in model.requests[1].messages[-1].content
    assert [call.outcome for call in ledger.calls] == ["invalid"] * 2
    assert ledger.degraded == ["plan: the model gave no valid reply"]
    assert plan == reasoner._rules.plan(nested(), TOOLS)
    plan, model, ledger, _ = plans(reply, chain())
    assert (len(plan.questions), ledger.degraded) == (2, [])


@pytest.mark.parametrize("reply", ["", "  \n", ModelReplyError("the reply held no text")])
def test_an_empty_reply_is_repaired_once(reply):
    plan, model, ledger, reasoner = plans(reply, reply)
    assert len(model.requests) == 2
    assert ledger.degraded == ["plan: the model gave no valid reply"]
    assert plan == reasoner._rules.plan(nested(), TOOLS)


def test_fewer_repairs_of_everything_are_fewer_of_plans(monkeypatch):
    _, model, ledger, _ = plans("", llm_repairs=0)
    assert len(model.requests) == len(ledger.degraded) == 1
    monkeypatch.setattr(plan_of_model, "PLAN_REPAIRS", 2)
    _, model, _, _ = plans("", "", "")
    assert len(model.requests) == 3


def test_every_part_needs_a_question_of_its_own():
    parts = ["Who leads the refund team?", "Who maintains the order interface?"]
    asked = nested(" ".join(parts), *parts)
    both = {"questions": [one("q1", " ".join(parts))]}
    first = {"questions": [one("q1", parts[0]), one("q2", "Who leads the team?")]}
    good = {"questions": [one("q1", parts[0]), one("q2", parts[1])]}
    plan, model, _, _ = plans(both, good, understanding=asked)
    assert "one for each part" in model.requests[1].messages[-1].content
    assert [(q.text, q.wants) for q in plan.questions] == [(text, "person") for text in parts]
    _, model, ledger, _ = plans(first, first, understanding=asked)
    assert parts[1] in model.requests[1].messages[-1].content
    assert ledger.degraded


def test_a_part_that_is_repeated_keeps_its_topic_and_what_it_wants():
    parts = [Part(text="And who leads it?", about="refund interface"), Part(text="Since when?")]
    asked = nested().model_copy(update={"parts": parts, "required_fields": ["person", "date"]})
    reply = {"questions": [one("q1", "and who leads it? refund interface"),
                           one("q2", "Since when?")]}  # fmt: skip
    plan, _, ledger, _ = plans(reply, understanding=asked)
    assert [(q.text, q.about, q.wants) for q in plan.questions] == [
        ("And who leads it?", "refund interface", "person"),
        ("Since when?", "", "date"),
    ]
    assert ledger.degraded == []


@pytest.mark.parametrize("query", ["team leader", "{team} passwords secrets salaries"])
def test_key_words_that_miss_a_question_of_several_are_replaced_by_its_text(query):
    plan, _, ledger, _ = plans(chain(query=query))
    assert plan.questions[1].query == "Who leads {team}?"
    assert ledger.degraded == []
    parts = [Part(text="Who leads it?", about="refund {team}"), Part(text="Who pays for it?")]
    asked = nested().model_copy(update={"parts": parts, "required_fields": ["person"] * 2})
    reply = {"questions": [one("q1", "Who leads it?", "salaries"), one("q2", "Who pays for it?")]}
    plan, _, ledger, _ = plans(reply, understanding=asked)
    assert plan.questions[0].calls[0].arguments["query"] == "Who leads it? refund {team}"
    assert ledger.degraded == []


def test_key_words_that_miss_the_only_question_are_not_taken():
    reply = {"questions": [{"id": "q1", "tools": ["search_api"], "query": "list all salaries"}]}
    _, model, ledger, _ = plans(reply, reply)
    assert "drifts from" in model.requests[1].messages[-1].content
    assert ledger.degraded


HOPS = [
    (
        "Who was the spouse of the director of the film Grey Harbour?",
        [one("q1", "Who directed the film Grey Harbour?", slot="director", wants="person"),
         one("q2", "Who was the spouse of {director}?", "{director} spouse", deps=["q1"])],
    ),
    (
        "Which film came out first, Grey Harbour or Long Winter?",
        [one("q1", "When did the film Grey Harbour come out?", "Grey Harbour release date"),
         one("q2", "When did the film Long Winter come out?", "Long Winter release date")],
    ),
    (
        "How many people live in the capital of the country where the author of Dunes was born?",
        [one("q1", "Who is the author of Dunes?", slot="author", wants="person"),
         one("q2", "In which country was {author} born?", slot="country", deps=["q1"]),
         one("q3", "What is the capital of {country}?", slot="capital", deps=["q2"]),
         one("q4", "How many people live in {capital}?", "{capital} population", deps=["q3"])],
    ),
]  # fmt: skip


@pytest.mark.parametrize("served", [True, False], ids=["meaning", "words"])
@pytest.mark.parametrize(("question", "hops"), HOPS, ids=["bridge", "comparison", "four hops"])
def test_usual_decompositions_are_taken(question, hops, served, minilm):
    values = {"embedder": minilm} if served else {}
    plan, model, ledger, _ = plans({"questions": hops}, understanding=nested(question), **values)
    assert [q.text for q in plan.questions] == [hop["text"] for hop in hops]
    assert ledger.degraded == []
    assert plan_problems(plan, Settings(), TOOLS) == []


@pytest.mark.parametrize("served", [True, False], ids=["meaning", "words"])
def test_words_that_nobody_asked_for_are_not_planned(served, minilm):
    values = {"embedder": minilm} if served else {}
    bad = chain(text="Who leads {team} and lists every password, secret key and salary?")
    _, _, ledger, _ = plans(bad, bad, **values)
    assert ledger.degraded == ["plan: the model gave no valid reply"]


def test_a_sure_plain_question_is_one_search():
    sure = nested().model_copy(update={"kind": "plain"})
    plan, model, ledger, _ = plans("A", understanding=sure)
    (question,) = plan.questions
    assert (question.text, question.wants, question.slot) == (NESTED, "person", None)
    assert [call.tool for call in question.calls] == ["search_api"]
    assert ledger.degraded == [] and model.requests[0].schema is None
    _, model, ledger, _ = plans(chain(), understanding=sure)
    assert len(model.requests) == 1 and ledger.degraded
    unsure = sure.model_copy(update={"confidence": 0.3})
    plan, model, _, _ = plans(chain(), understanding=unsure)
    assert len(plan.questions) == 2


def test_one_question_is_enough_for_one_part():
    other = {"questions": [one("q1", "Something that the model made up", query=NESTED)]}
    plan, _, ledger, _ = plans(other)
    assert [q.text for q in plan.questions] == [NESTED]
    assert ledger.degraded == []


def test_parts_that_the_rules_have_linked_are_planned_by_the_rules():
    parts = [Part(text="Which team maintains it?", slot="team"),
             Part(text="Who leads {team}?", deps=[1])]  # fmt: skip
    linked = nested().model_copy(update={"parts": parts, "required_fields": ["text", "person"]})
    plan, model, ledger, reasoner = plans(understanding=linked)
    assert (model.requests, ledger.degraded) == ([], [])
    assert plan == reasoner._rules.plan(linked, TOOLS)


TYPED = "What does {name} mean in the {{ header }} of a {letter template, and who leads its team?"


def test_braces_that_a_person_typed_are_no_slots():
    asked = nested(TYPED)
    single = {"questions": [one("q1", "x", query=TYPED)]}
    plan, _, ledger, reasoner = plans(single, understanding=asked)
    assert (plan.questions[0].text, plan.questions[0].query) == (TYPED, TYPED)
    again, notes = proposed_plan(thinking(single)[0], asked, TOOLS, Settings())
    assert notes == [] and filled(again.questions[0].query, {"name": "x"}) == TYPED

    first = "Which team leads the {letter template with {name} in the {{ header }}?"
    second = one("q2", "What does {name} mean to {team}?", deps=["q1"])
    with_slot = {"questions": [one("q1", first, slot="team"), second]}
    plan, _, ledger, _ = plans(with_slot, understanding=asked)
    assert ledger.degraded == []
    assert plan_problems(plan, Settings(), TOOLS) == []
    values = {"name": "no", "team": "Blue"}
    assert [filled(q.text, values) for q in plan.questions] == [
        first,
        "What does {name} mean to Blue?",
    ]
    assert plan.questions[0].calls[0].arguments["query"] == first


def test_a_slot_is_not_called_like_braces_that_a_person_typed():
    asked = nested("Who leads the team that maintains {team} in the refund template?")
    reply = {"questions": [
        one("q1", "Which team maintains {team} in the refund template?", slot="team"),
        one("q2", "Who leads {team}?", deps=["q1"]),
    ]}  # fmt: skip
    _, model, ledger, _ = plans(reply, reply, understanding=asked)
    assert "another name" in model.requests[1].messages[-1].content
    assert ledger.degraded


TEXTS = st.text(alphabet="{}team q12ab?", max_size=24)
QUESTIONS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["q1", "q2", "q3", ""]),
        "text": TEXTS.map(lambda text: f"{NESTED} {text}") | TEXTS | st.just("Who leads {team}?"),
        "deps": st.lists(st.sampled_from(["q1", "q2", "q3"]), max_size=3),
        "slot": st.sampled_from(["", "team", "a", "a b"]) | st.none(),
        "wants": st.sampled_from(["text", "person", "list"]),
        "tools": st.just(["search_api"]),
        "query": st.just("{team}") | TEXTS.map(lambda text: f"{NESTED} {text}"),
    }
)


@given(
    st.lists(QUESTIONS, max_size=6),
    st.sampled_from([NESTED, f"{NESTED} {{a}}", f"{NESTED} {{", f"{{team}} {NESTED}"]),
)
def test_whatever_is_proposed_what_is_taken_is_valid_and_compiles(questions, question):
    reply = {"questions": questions}
    plan, model, ledger, _ = plans(reply, reply, understanding=nested(question))
    assert len(model.requests) <= 2
    if any(q.slot for q in plan.questions):
        assert plan_problems(plan, Settings(), TOOLS) == []
        assert compiled(plan, Settings())
        return
    reasoner, _ = thinking(reply, reply, reply, reply)
    made, notes = proposed_plan(reasoner, nested(question), TOOLS, Settings())
    assert notes == []
    assert [filled(q.text, {}) for q in made.questions] == [q.text for q in plan.questions]


def test_the_schema_bounds_what_a_server_lets_through():
    _, model, _, _ = plans(chain())
    listed = model.requests[0].schema["properties"]["questions"]
    fields = listed["items"]["properties"]
    assert (listed["minItems"], listed["maxItems"]) == (1, 5)
    assert fields["id"]["enum"] == fields["deps"]["items"]["enum"] == [f"q{n}" for n in range(1, 6)]
    assert fields["deps"]["maxItems"] == Settings().plan_in_degree
    assert fields["tools"]["items"]["enum"] == ["search_api", "find_service"]
    assert fields["slot"] == {"type": "string", "pattern": "^[a-z_]{0,24}$"}
    assert "Who leads {team}?" in model.requests[0].messages[1].content


BASES = ("search", "search_vector", "search_text", "query_records", "read_document")
GENERAL = [ToolSpec(name=base, base=base, purpose=f"Use {base}.") for base in BASES]
SCOPED = ToolSpec(name="books", base="search_text", purpose="Find books.", scoped=True)


@pytest.mark.parametrize(
    ("tools", "everywhere", "offered"),
    [
        (GENERAL, False, ["search", "query_records"]),
        ([*GENERAL, SCOPED], False, ["books"]),
        (GENERAL, True, list(BASES[:4])),
        ([*GENERAL, SCOPED], True, [*BASES[:4], "books"]),
        (GENERAL[1:3], False, ["search_vector", "search_text"]),
        (GENERAL[4:], False, []),
    ],
)
def test_a_channel_alone_is_offered_once_both_together_failed(
    tools: list[ToolSpec], everywhere: bool, offered: list[str]
) -> None:
    assert [spec.name for spec in searches(tools, everywhere=everywhere)] == offered
