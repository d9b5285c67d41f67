"""The whole graph with a scripted chat model: each path it can take, and what it leaves behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from chat_doubles import ScriptedChat, scripted_chat

from app.session import Session
from core.auth import AuthContext
from core.errors import ModelError
from core.fields.chat import DECISIONS, NULL
from core.settings import Settings
from core.trace import StreamEvent
from models.chat.types import ModelTimeout, ModelUnavailable
from reasoning.llm.reasoner import LlmReasoner
from reasoning.types import Turn

QUESTION = "What is the default timeout of the order query API?"
TRUE = "The default timeout of the order query API is 30 seconds."
TASK = re.compile(r"Task: ([A-Z]+)")
XPAY = (
    "What is the maximum timeout of the XPay refund API, who maintains it,"
    " and have there been complaints recently?"
)
PARTS = [
    ("What is the maximum timeout of the XPay refund API?", "search_api_docs"),
    ("Who maintains the XPay refund API?", "lookup_services"),
    ("Have there been complaints about the XPay refund API recently?", "search_tickets"),
]


def prompt_of(chat: ScriptedChat) -> str:
    return str(chat.prompts[-1][-1].text)


def pieces(prompt: str) -> list[str]:
    """Return the evidence texts of a prompt, in their order."""
    return re.findall(r"<evidence n=[^>]*>\n?(.*?)\n?</evidence>", prompt, re.DOTALL)


class Script:
    """Decide sensibly from what the prompt shows, except where a test says otherwise."""

    def __init__(self, **special: Callable[[str, int], str]) -> None:
        self.special = special
        self.tasks: list[str] = []
        self.chat = scripted_chat([])
        self.chat.llm.messages = self._replies()

    def _replies(self) -> Iterator[str]:
        task = ""
        while True:
            prompt = prompt_of(self.chat)
            found = TASK.search(prompt)
            if found is None and task not in self.special:
                pytest.fail(f"a sensible {task} is not good enough: {prompt}")
            task = found.group(1).lower() if found else task
            self.tasks.append(task)
            decide = self.special.get(task) or getattr(self, f"_{task}")
            yield decide(prompt, self.tasks.count(task))

    def reasoner(self, rules: Any) -> LlmReasoner:
        return LlmReasoner(self.chat, rules, Settings(), None, frozenset([*DECISIONS, NULL]))

    def _understand(self, prompt: str, time: int) -> str:
        question = prompt.split("<question>\n")[1].split("\n</question>")[0]
        part = {"text": question, "wants": "text"}
        return understood(question, [part])

    def _plan(self, prompt: str, time: int) -> str:
        if "<parts>" not in prompt:  # the tool of a plain question
            found = re.search(r"^([A-Z]): Search the API docs", prompt, re.MULTILINE)
            return found.group(1) if found else "A"
        parts = prompt.split("<parts>\n")[1].split("\n</parts>")[0].splitlines()
        tools = [
            next((t for text, t in PARTS if text in part), "search_api_docs") for part in parts
        ]
        texts = [re.sub(r"<[^>]*>|^\d+[.:)] *", "", part).strip() for part in parts]
        steps = [
            {"id": f"q{n}", "text": text, "tools": [tool], "query": text}
            for n, (tool, text) in enumerate(zip(tools, texts, strict=True), start=1)
        ]
        return json.dumps({"questions": steps})

    def _grade(self, prompt: str, time: int) -> str:
        return next(
            (n for n, text in zip("ABCDEF", pieces(prompt), strict=False) if TRUE in text), "A"
        )

    def _answer(self, prompt: str, time: int) -> str:
        """Say the sentence of each piece of evidence that shares most words with the question."""
        asked = set(prompt.split("<question>\n")[1].lower().split())
        found = []
        for number, text in enumerate(pieces(prompt), start=1):
            said = [one.strip() for one in re.findall(r"[^.\n]+\.", text)]
            shared = [len(asked & set(one.lower().split())) for one in said]
            found += [(said[shared.index(max(shared))], number)] if said else []
        return claims(*found)


def understood(question: str, parts: list[dict[str, str]]) -> str:
    kind = "multi" if len(parts) > 1 else "plain"
    return json.dumps({"standalone": question, "kind": kind, "intent": "fact", "parts": parts})


def claims(*found: tuple[str, int]) -> str:
    return " ".join(f"{text} [{n}]" for text, n in found) or "NOT FOUND"


def nodes(state: dict[str, Any]) -> list[str]:
    return [step.node for step in state["trail"]]


def degraded(state: dict[str, Any]) -> list[str]:
    return [step.degraded for step in state["trail"] if step.degraded]


def test_a_plain_question_takes_four_decisions(run: Callable[..., Any]) -> None:
    script = Script(answer=lambda *_: claims((TRUE, 1)))
    state = run(QUESTION, reasoner=script.reasoner)
    assert script.tasks == ["understand", "plan", "grade", "answer"]
    assert [claim.text for claim in state["answer"].claims] == [TRUE]
    assert degraded(state) == []
    usage = state["usage"]
    calls = [call for step in state["trail"] for call in step.calls]
    assert usage.model_calls == len(calls) == 4
    assert usage.model_tokens == sum(c.prompt_tokens + c.completion_tokens for c in calls) > 0
    assert usage.tokens > usage.model_tokens  # the evidence that the tools returned, too
    assert all(len(call.prompt_hash) == 16 and call.reply for call in calls)


def test_a_question_of_three_parts_asks_three_tools(run: Callable[..., Any]) -> None:
    parts = [{"text": text, "wants": "text"} for text, _ in PARTS]
    script = Script(understand=lambda *_: understood(XPAY, parts))
    state = run(XPAY, reasoner=script.reasoner)
    assert [step.tool for step in state["trail"] if step.tool] == [tool for _, tool in PARTS]
    assert [q.text for q in state["plan"].questions] == [text for text, _ in PARTS]
    assert {claim.question_id for claim in state["answer"].claims} >= {"q1", "q2"}
    assert script.tasks.count("answer") == 1
    assert degraded(state) == []


def test_a_weak_search_is_rewritten_once(run: Callable[..., Any]) -> None:
    def grade(prompt: str, time: int) -> str:
        return "Z" if time == 1 else script._grade(prompt, time)

    other = {"tools": ["search_text"], "query": "order query API default timeout seconds"}
    script = Script(
        grade=grade,
        rewrite=lambda *_: json.dumps(other),
        answer=lambda prompt, _: claims(
            (TRUE, next(n for n, text in enumerate(pieces(prompt), 1) if "30 seconds" in text))
        ),
    )
    state = run(QUESTION, reasoner=script.reasoner)
    assert nodes(state).count("rewrite") == 1
    (call,) = state["rewritten"]["h1"]
    assert (call.tool, call.arguments["query"]) == ("search_text", other["query"])
    assert [claim.text for claim in state["answer"].claims] == [TRUE]


def test_evidence_that_never_answers_ends_in_a_refusal(run: Callable[..., Any]) -> None:
    def rewrite(prompt: str, time: int) -> str:
        return json.dumps({"tools": ["search"], "query": "order query API timeout default"})

    state = run(QUESTION, reasoner=Script(grade=lambda *_: "Z", rewrite=rewrite).reasoner)
    assert state["answer"].refused
    assert state["answer"].stop_reason == "no_relevant_evidence"
    assert nodes(state).count("rewrite") == 1
    assert "generate" not in nodes(state)


def test_a_bad_grade_leaves_that_decision_to_the_rules(run: Callable[..., Any]) -> None:
    script = Script(grade=lambda *_: '{"e1": "excellent"}', answer=lambda *_: claims((TRUE, 1)))
    state = run(QUESTION, reasoner=script.reasoner)
    assert script.tasks.count("grade") == 1
    (reason,) = degraded(state)
    assert reason.startswith("grade: ")
    assert state["usage"].degraded == 1
    assert [claim.text for claim in state["answer"].claims] == [TRUE]
    assert any("the rules decided" in warning for warning in state["answer"].warnings)
    grading = next(step for step in state["trail"] if step.node == "grade_documents")
    assert [call.outcome for call in grading.calls] == ["invalid"]


def test_a_plan_that_breaks_a_rule_twice_is_made_by_the_rules(run: Callable[..., Any]) -> None:
    def circle(prompt: str, time: int) -> str:
        if time == 2:
            assert "deps form no cycle" in prompt
        texts = [text for text, _ in PARTS]
        questions = [
            {"id": f"q{n}", "text": text, "deps": [f"q{n % 3 + 1}"], "slot": "", "wants": "text",
             "tools": ["search_api_docs"], "query": text}
            for n, text in enumerate(texts, start=1)
        ]  # fmt: skip
        return json.dumps({"questions": questions})

    parts = [{"text": text, "wants": "text"} for text, _ in PARTS]
    script = Script(understand=lambda *_: understood(XPAY, parts), plan=circle)
    state = run(XPAY, reasoner=script.reasoner)
    assert script.tasks.count("plan") == 2
    assert degraded(state) == ["plan: the model gave no valid reply"]
    assert state["usage"].degraded == 1
    assert [q.text for q in state["plan"].questions] == [text for text, _ in PARTS]
    assert any("the rules decided" in warning for warning in state["answer"].warnings)


def test_a_sentence_that_fails_the_check_gives_way_to_the_rules(run: Callable[..., Any]) -> None:
    wrong = TRUE.replace("30", "31")
    script = Script(answer=lambda *_: claims((wrong, 1)))
    state = run(QUESTION, reasoner=script.reasoner)
    assert [claim.text for claim in state["answer"].claims] == [TRUE]
    assert nodes(state).count("generate") == 1
    assert any("number 31" in warning for warning in state["answer"].warnings)


def test_a_model_that_finds_nothing_is_asked_once(run: Callable[..., Any]) -> None:
    script = Script(answer=lambda *_: "NOT FOUND")
    state = run("Who invented the order query API?", reasoner=script.reasoner)
    assert state["answer"].refused
    assert state["answer"].stop_reason == "no_relevant_evidence"
    assert script.tasks.count("answer") <= 1


@pytest.mark.parametrize("error", [ModelUnavailable("refused"), ModelTimeout("too slow")])
def test_a_model_that_fails_is_not_asked_again_in_the_run(
    error: ModelError, run: Callable[..., Any]
) -> None:
    def fail(prompt: str, time: int) -> Any:  # noqa: ANN401
        return error

    script = Script(plan=fail)
    state = run(QUESTION, reasoner=script.reasoner)
    assert set(script.tasks) == {"understand", "plan"}
    assert len(script.tasks) <= 3
    assert [claim.text for claim in state["answer"].claims] == [TRUE]
    assert any("did not answer" in warning for warning in state["answer"].warnings)


def test_a_budget_of_tokens_is_kept(run: Callable[..., Any]) -> None:
    script = Script()
    state = run(QUESTION, reasoner=script.reasoner, budget={"tokens": 3000})
    assert state["usage"].model_tokens <= 3000
    assert any("tokens" in warning for warning in state["answer"].warnings)


RUSSIAN = "Какой таймаут по умолчанию у API запроса заказа?"
SAID = "По умолчанию таймаут запроса заказа составляет 30 секунд."


@pytest.mark.parametrize(("verdict", "refused"), [("yes", False), ("no", True)])
def test_an_answer_in_the_language_of_the_question_needs_a_verdict(
    verdict: str, refused: bool, run: Callable[..., Any]
) -> None:
    def answer(prompt: str, time: int) -> str:
        found = [n for n, text in enumerate(pieces(prompt), 1) if TRUE in text]
        return claims((SAID, found[0])) if found else claims()

    script = Script(
        answer=answer,
        supports=lambda *_: verdict,
    )
    state = run(RUSSIAN, reasoner=script.reasoner)
    if "answer" not in script.tasks or not any(TRUE in item.text for item in state["evidence"]):
        pytest.fail("the search did not find the sentence")
    assert "supports" in script.tasks
    assert state["answer"].refused is refused
    assert (SAID in state["answer"].text) is not refused


def asked(
    session: Session,
    script: Script,
    question: str,
    decisions: Sequence[str] = ("auto",),
    **values: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    session._chat = (script.chat, "")
    session.settings = session.settings.model_copy(update={"llm_decisions": list(decisions)})
    try:
        return session.ask(question, AuthContext(tenant="default"), "xpay", **values)
    finally:
        session._chat = (None, "")


def test_what_is_shown_early_begins_the_final_answer(examples: Session) -> None:
    wrong = TRUE.replace("30", "31")
    script = Script(answer=lambda *_: claims((wrong, 1), (TRUE, 1)))
    events: list[StreamEvent] = []
    run = asked(examples, script, QUESTION, on_stream=events.append)
    shown = "".join(event.text for event in events if event.kind == "sentence")
    assert [event.kind for event in events] == ["rules", "sentence"]
    assert shown == f"{TRUE} [1]"
    assert run.result["answer"].startswith(shown)
    assert any("dropped" in warning for warning in run.result["warnings"])


def test_a_follow_up_is_understood_with_the_dialogue(examples: Session) -> None:
    alone = "What is the maximum timeout of the order query API?"
    script = Script(understand=lambda *_: understood(alone, [{"text": alone, "wants": "number"}]))
    run = asked(examples, script, "And the maximum?", DECISIONS, history=[Turn(QUESTION, TRUE)])
    assert run.trail[0].arguments["question"] == alone
    assert TRUE in script.chat.prompts[0][-1].text
    assert run.trail[0].degraded == ""


def test_the_classic_pipeline_writes_with_the_model_and_decides_by_rules(
    examples: Session,
) -> None:
    script = Script(answer=lambda *_: claims((TRUE, 1)))
    run = asked(examples, script, QUESTION, pipeline="classic")
    assert set(script.tasks) == {"answer"}
    assert not run.result["refused"]


def test_a_run_gives_the_model_what_the_budget_leaves(examples: Session) -> None:
    script = Script(answer=lambda *_: claims((TRUE, 1)))
    run = asked(examples, script, QUESTION)
    usage = run.result["usage"]
    assert usage["model_calls"] == 1
    assert usage["degraded"] == 0
    assert 0 < usage["model_tokens"] < usage["tokens"]
