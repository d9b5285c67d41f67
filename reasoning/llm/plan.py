"""Ask the model for a plan: questions that may wait for each other, each with its search."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.settings import Settings
from core.types import AnswerKind, Call, Part, Plan, SubQuestion, ToolSpec, Understanding
from models.chat.types import ChatReply, ChatRequest
from reasoning.llm.deciding import Ask, Decider, ReplyReader
from reasoning.llm.prompts import one_line, tools_data
from reasoning.llm.replies import (
    Reply,
    Schema,
    Unfit,
    items,
    one_of,
    parsed,
    record,
    text,
)
from reasoning.llm.searching import ProposedSearch, folded, search_fields, searches
from reasoning.llm.understand import WANTS
from reasoning.planning.rules import first_problem
from reasoning.planning.slots import describe_problem, filled, shown, slots_in
from reasoning.question_words import kept_in_any_form

_BRACE = re.compile(r"\{([^\W\d]\w{0,63})\}|[{}]")


class PlannedQuestion(Reply):
    """Hold one question as the model gives it."""

    id: str
    tools: list[str]
    query: str
    text: str = ""
    deps: list[str] = []
    slot: str | None = None
    wants: AnswerKind = "text"


class Planned(Reply):
    """Hold the model's plan."""

    questions: list[PlannedQuestion]


def most_questions(understanding: Understanding, settings: Settings) -> int:
    """Return how many questions a plan may have: one where a question is surely plain."""
    sure = understanding.confidence >= settings.plan.plain_confidence
    plain = understanding.intent == "recommend" or (understanding.kind == "plain" and sure)
    if len(understanding.parts) == 1 and plain:
        return 1
    return max(len(understanding.parts), settings.answering.max_sub_questions)


class Proposal(ProposedSearch):
    """Take a reply as a plan for a question, completely or not at all.

    `{name}` is a slot, unless the person who asks has typed just that: then it is what it says,
    as are all other braces of a question that has any.
    """

    def __init__(
        self, understanding: Understanding, offered: Sequence[ToolSpec], decider: Decider
    ) -> None:
        """Plan for these parts, with these tools."""
        super().__init__(understanding.language, offered, decider)
        self._understanding = understanding
        self._parts = [part.search_text for part in understanding.parts]
        typed = " ".join([understanding.question, *self._parts])
        self._braces = {brace[0] for brace in _BRACE.finditer(typed)}

    def plan(self, reply: Planned) -> Plan:
        """Return the plan; raises Unfit with the first rule that it breaks."""
        proposed = reply.questions
        if len(proposed) == len(self._parts) == 1:  # the only one asks the only part
            proposed = [proposed[0].model_copy(update={"text": self._parts[0]})]
        plan = Plan(questions=[self._question(question) for question in proposed])
        problem = first_problem(plan, self._settings)
        if problem is not None:
            raise Unfit(describe_problem(problem))
        self._require_all_parts(plan)
        searched = [
            self._searched(self._focused(question, plan), planned.tools)
            for question, planned in zip(plan.questions, proposed, strict=True)
        ]
        if any(question.slot is not None for question in searched):
            return Plan(questions=searched)
        # Without slots, braces are not doubled: all of them are what a person has typed.
        bare = [{"text": filled(one.text, {}), "query": filled(one.query, {})} for one in searched]
        pairs = zip(searched, bare, strict=True)
        return Plan(questions=[one.model_copy(update=texts) for one, texts in pairs])

    def _question(self, planned: PlannedQuestion) -> SubQuestion:
        asked = " ".join(planned.text.split())
        part, wants = self._part(asked)
        text = self._template(part.text if part else asked)
        slot = planned.slot or None
        if slot is not None and f"{{{slot}}}" in self._braces:
            raise Unfit(f"the question itself says {{{slot}}}; give the slot another name")
        if self._understanding.intent == "recommend":
            wants = "list"
        return SubQuestion(
            id=planned.id,
            text=text,
            about=part.about if part else "",
            query=self._template(" ".join(planned.query.split())),
            language=self._language,
            wants=planned.wants if slot or not wants else wants,
            deps=planned.deps,
            slot=slot,
        )

    def _part(self, asked: str) -> tuple[Part | None, AnswerKind | None]:
        """Return the part that a question repeats, and what it wants."""
        wanted = self._understanding.required_fields
        for part, wants in zip(self._understanding.parts, wanted, strict=True):
            if folded(asked) in (folded(part.text), folded(part.search_text)):
                return part, wants
        return None, None

    def _template(self, text: str) -> str:
        """Return a text in which every brace that is none of a slot is doubled; raises Unfit."""

        def read(brace: re.Match[str]) -> str:
            if brace[1] and brace[0] not in self._braces:
                return brace[0]
            if not self._braces:
                raise Unfit(
                    f"braces stand around the name of a slot only, as {{name}}: {shown(text)}"
                )
            return brace[0].replace("{", "{{").replace("}", "}}")

        return _BRACE.sub(read, text)

    def _require_all_parts(self, plan: Plan) -> None:
        """Raise Unfit unless the questions ask every part, and nothing but the parts."""
        questions = plan.questions
        least = len(self._parts)
        most = most_questions(self._understanding, self._settings)
        if not least <= len(questions) <= most:
            raise Unfit(f"plan {least} to {most} questions: one for each part at least")
        asked = [_asked(question) for question in questions]
        if len(set(map(folded, asked))) < len(asked):
            raise Unfit("no two questions may ask the same")
        for part in self._parts:
            self._require_kept(f"the questions together must ask '{part}'", part, asked)
        slots = [question.slot for question in questions if question.slot]
        known = [*self._parts, *slots]
        for question, own in zip(questions, asked, strict=True):
            self._require_kept(f"question {question.id} asks something else: '{own}'", own, known)

    def _require_kept(self, rule: str, original: str, texts: Sequence[str]) -> None:
        """Raise Unfit with the rule unless the texts keep the original, together or one of them.

        One is compared by itself as well because "Since when?" has no words but common ones, which
        count only where there are no others.
        """
        joined, language = " ".join(texts), self._language
        kept = max(kept_in_any_form(original, text, language) for text in [joined, *texts])
        self._decider.require_kept(rule, kept, original, joined, language)

    def _focused(self, question: SubQuestion, plan: Plan) -> SubQuestion:
        """Search for the question itself where the key words of one of several miss it.

        That costs a search some precision, and asking again might cost the whole plan.
        """
        missing = set(slots_in(question.text)) - set(slots_in(question.query))
        kept = self.similarity(_asked(question), _readable(question.query))
        drifts = len(plan.questions) > 1 and kept < self._settings.answering.drift_similarity
        if not missing and not drifts:
            return question
        query = f"{question.text} {self._template(question.about)}".strip()
        return question.model_copy(update={"query": query})

    def _searched(self, question: SubQuestion, tools: Sequence[str]) -> SubQuestion:
        """Add the calls; those of a question with slots wait for the values."""
        asked = _asked(question)
        query = _readable(question.query)
        if slots_in(question.query):
            _, specs, _ = self.checked(query, tools, asked)
            calls = [Call(tool=spec.name) for spec in specs]
        else:
            _, calls, _ = self.compiled(query, tools, asked)
        return question.model_copy(update={"calls": calls})


def _asked(question: SubQuestion) -> str:
    return f"{_readable(question.text)} {question.about}".strip()


def _readable(template: str) -> str:
    """Return a template with the names of its slots as words."""
    return filled(template, {name: name.replace("_", " ") for name in slots_in(template)})


# Chosen, not measured:
PLAN_REPAIRS = 1  # times that an invalid plan is asked for again, within llm.repairs

SLOT = "^[a-z_]{0,24}$"  # "" for none: servers enforce a pattern more widely than a choice of types


def plan_of(
    understanding: Understanding,
    tools: Sequence[ToolSpec],
    decider: Decider,
) -> Ask[str, Plan]:
    """Return what to ask for questions that together find everything that is asked."""
    offered = searches(tools)
    settings = decider.settings
    least, most = len(understanding.parts), most_questions(understanding, settings)
    parts = "\n".join(
        f"{n}. {one_line(part.search_text)}" for n, part in enumerate(understanding.parts, start=1)
    )

    def make(_: Sequence[str]) -> ChatRequest:
        prompt = decider.prompts.text(
            "decompose", tools=tools_data(offered), parts=parts, limit=str(most), slot="{team}"
        )
        schema = _several_schema(least, most, settings.plan.in_degree, offered)
        # Each question is written twice: as it is asked, and as it is searched for.
        return decider.request(prompt, schema, 2 * settings.llm.decision_tokens)

    def read(answer: ChatReply, _: Sequence[str]) -> Plan:
        reply = parsed(answer.text, Planned)
        return Proposal(understanding, offered, decider).plan(reply)

    return Ask("plan", make, ReplyReader(read), repairs=PLAN_REPAIRS)


def _several_schema(least: int, most: int, deps: int, offered: Sequence[ToolSpec]) -> Schema:
    ids = one_of([f"q{place}" for place in range(1, most + 1)])
    question = record(
        id=ids,
        text=text(),
        deps=items(ids, most=deps),
        slot=text(SLOT),
        wants=one_of([*WANTS, "list"]),
        **search_fields(offered),
    )
    return record(questions=items(question, least, most))
