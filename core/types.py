"""The words that every room shares: evidence, plans, tools, cited claims, answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# "topic": all that is written about what the question names.
AnswerKind = Literal["text", "person", "date", "number", "place", "yesno", "list", "topic"]
Intent = Literal["fact", "recommend"]
QuestionKind = Literal["plain", "multi"]

# What metadata say of the book that a full text belongs to.
BOOK = ("document_id", "title", "source", "authors", "year")

# Inverse document frequency of a term within what the caller asks; higher is rarer.
TermWeights = Callable[[list[str]], dict[str, float]]


class FrozenModel(BaseModel):
    """A base for immutable models that refuse unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class StopReason(StrEnum):
    """Say why a run ended."""

    enough_evidence = "enough_evidence"
    required_fields_missing = "required_fields_missing"
    no_relevant_evidence = "no_relevant_evidence"
    max_steps = "max_steps"
    max_tool_calls = "max_tool_calls"
    max_tokens = "max_tokens"
    max_cost = "max_cost"
    timeout = "timeout"
    policy = "policy"
    unsupported_answer = "unsupported_answer"
    cancelled = "cancelled"
    clarification_needed = "clarification_needed"
    nothing_asked = "nothing_asked"


LIMITS = (
    *(StopReason.max_steps, StopReason.max_tool_calls, StopReason.max_tokens),
    *(StopReason.max_cost, StopReason.timeout, StopReason.policy),
)


class AnswerSpan(FrozenModel):
    """Say where a text answers a question: text[start:end], and `value`, the span of the answer.

    `odds` are log odds against "nothing answers".
    """

    start: int
    end: int
    value: tuple[int, int] | None
    odds: float


class Evidence(FrozenModel):
    """Hold one chunk and how it was found.

    `score` is the tool's own ranking score (higher is better, comparable within one call only);
    `scores` keeps each channel's; `grades` maps a sub-question id to 0..3 (off topic, related,
    partly answers, answers), `readings` to where it answers. `section` is the heading path and
    `page` counts from 1.
    `collection` is named where a question is about several.
    """

    evidence_id: str
    chunk_id: str
    document_id: str
    document_key: str
    source: str
    title: str
    text: str
    section: str = ""
    page: int | None = None
    ordinal: int = 0
    kind: str = "text"
    language: str = "und"
    version: str = ""
    updated_at: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    tool: str = ""
    query: str = ""
    score: float = 0.0
    scores: dict[str, float] = Field(default_factory=dict)
    grades: dict[str, int] = Field(default_factory=dict)
    readings: dict[str, AnswerSpan] = Field(default_factory=dict)
    collection: str = ""

    @property
    def best_grade(self) -> int:
        """Return the highest grade any sub-question gave, 0 when ungraded."""
        return max(self.grades.values(), default=0)

    @property
    def work(self) -> dict[str, Any]:
        """Return title, authors and year of the work this is from: its book's, or its own."""
        book = self.metadata.get("book")
        return book if isinstance(book, dict) else {**self.metadata, "title": self.title}

    def cited(self, start: int, end: int) -> Citation:
        """Return the citation of text[start:end]."""
        return Citation(
            evidence_id=self.evidence_id,
            document_id=self.document_id,
            source=self.source,
            chunk_id=self.chunk_id,
            start=start,
            end=end,
            quote=self.text[start:end],
        )

    def of_book(self, book: Mapping[str, Any]) -> Evidence:
        """Return this as evidence from a full text of a book, which its metadata then name."""
        named = {name: book[name] for name in BOOK if book[name]}
        return self.model_copy(update={"metadata": {**self.metadata, "book": named}})


class Call(FrozenModel):
    """Name one tool call: what a planner may produce, and nothing else."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class SubQuestion(FrozenModel):
    """Hold one question that one search can answer.

    `text` is what the person asked, `about` the topic it leaves out, `query` the stand-alone
    search text, `calls` the tools that serve it, `wants` the kind of answer that is complete.
    """

    id: str
    text: str
    query: str
    about: str = ""
    language: str = "und"
    wants: AnswerKind = "text"
    calls: list[Call] = Field(default_factory=list)
    deps: list[str] = Field(default_factory=list)
    slot: str | None = None

    @property
    def in_chain(self) -> bool:
        """Tell whether another question waits for its value, or it for another's."""
        return bool(self.slot or self.deps)


class Plan(FrozenModel):
    """Hold the sub-questions in the order in which they are asked.

    `whole` is the question they were taken from, as plain text; it is searched for as well where
    they stand side by side, since one passage may serve several of them.
    """

    questions: list[SubQuestion]
    whole: str = ""

    def question(self, question_id: str) -> SubQuestion:
        """Return the sub-question of this id."""
        return next(q for q in self.questions if q.id == question_id)


class Part(FrozenModel):
    """Hold one clause that asks something, and the topic it leaves out ("" when it says it).

    `slot` names the value it finds for later parts, whose text says `{slot}` in its place; `deps`
    are the places, from 1, of the parts it waits for. Where any part has a slot, braces that a
    person typed are doubled in all of them.
    """

    text: str
    about: str = ""
    slot: str | None = None
    deps: list[int] = Field(default_factory=list)

    @property
    def search_text(self) -> str:
        """Return the clause with its topic."""
        return f"{self.text} {self.about}".strip()


class Understanding(FrozenModel):
    """Hold the analysis of a question, made before anything is searched.

    `question` is stand-alone: what a follow-up left out is added from the history.
    `required_fields` names the kind of answer each part wants. `confidence`, 0..1, says how sure
    the kind is. `corrected` gives what misspelt words were read as, by the word that was typed.
    """

    question: str
    kind: QuestionKind = "plain"
    confidence: float = Field(default=1.0, ge=0, le=1)
    reason: str = ""
    language: str = "und"
    intent: Intent = "fact"
    entities: list[str] = Field(default_factory=list)
    required_fields: list[AnswerKind] = Field(default_factory=list)
    parts: list[Part] = Field(default_factory=list)
    corrected: dict[str, str] = Field(default_factory=dict)


class Grade(FrozenModel):
    """Judge one piece of evidence for one sub-question, 0..3, with the reason in words."""

    evidence_id: str
    grade: int = Field(ge=0, le=3)
    reason: str
    reading: AnswerSpan | None = None


class Rewrite(FrozenModel):
    """Propose another search for a sub-question; `similarity` to the original is 0..1."""

    query: str
    calls: list[Call]
    similarity: float
    reason: str


class Finding(FrozenModel):
    """Name a value found in evidence: a character span of the chunk's text, or of its title."""

    value: str
    evidence_id: str
    start: int
    end: int
    field: Literal["text", "title"] = "text"


class Citation(FrozenModel):
    """Point from a claim to a character span: chunk text[start:end] == quote.

    `collection` is named in the result of a question about several.
    """

    evidence_id: str
    document_id: str
    source: str
    chunk_id: str
    start: int
    end: int
    quote: str
    collection: str = ""


class Claim(FrozenModel):
    """Hold one sentence of an answer with what it rests on; `question_id` says what it answers.

    `confidence`, 0..1, is how likely it answers, None where unknown. `verdict` is what it says
    to a question for yes or no, "" where that is not sure.
    """

    text: str
    citations: list[Citation]
    question_id: str = ""
    confidence: float | None = None
    verdict: Literal["yes", "no", ""] = ""


class Draft(FrozenModel):
    """Hold a reasoner's proposed answer, before it is verified."""

    claims: list[Claim]
    missing: list[str] = Field(default_factory=list)


class Conflict(FrozenModel):
    """Name claims of an answer, by place from 0, in which documents contradict each other."""

    question_id: str
    claims: list[int]


class Answer(FrozenModel):
    """Hold the verified answer or the refusal."""

    text: str
    claims: list[Claim] = Field(default_factory=list)
    conflicts: list[Conflict] = Field(default_factory=list)
    refused: bool = False
    stop_reason: StopReason = StopReason.enough_evidence
    missing: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)


class Clarification(FrozenModel):
    """Ask back: `options` are titles of documents, as plain text; any other reply is as good."""

    question: str
    options: list[str] = Field(default_factory=list)


class FieldInfo(FrozenModel):
    """Describe one queryable record field as the caller may see it."""

    name: str
    type: Literal["text", "number"]
    values: int = 0
    examples: list[str] = Field(default_factory=list)


class RecordTable(FrozenModel):
    """Name a file of records with their fields in its order; "" for many files together."""

    file: str
    records: int
    fields: list[str] = Field(default_factory=list)


class ToolSpec(FrozenModel):
    """Describe one small tool.

    `base` names the general tool behind a renamed one; `purpose` is one sentence, `not_for` are
    counter-examples, `examples` are questions it serves; `arguments` is the JSON schema of its
    arguments and `fields` are the record fields it can query, as this caller may see them, `tables`
    the files of those records; `others` counts the documents beside them that are no records.
    """

    name: str
    base: str
    purpose: str
    not_for: list[str] = Field(default_factory=list)
    examples: list[str] = Field(default_factory=list)
    arguments: dict[str, Any] = Field(default_factory=dict)
    fields: list[FieldInfo] = Field(default_factory=list)
    tables: list[RecordTable] = Field(default_factory=list)
    others: int = 0
    scoped: bool = False


def numbered_sources(claims: Sequence[Claim]) -> dict[str, int]:
    """Number the cited chunks in the order in which the claims cite them, from 1."""
    numbers: dict[str, int] = {}
    for claim in claims:
        for citation in claim.citations:
            numbers.setdefault(citation.chunk_id, len(numbers) + 1)
    return numbers


def marked(claim: Claim, numbers: dict[str, int]) -> str:
    """Return a claim with the marks that follow it; those of a block of code stand below it."""
    return f"{claim.text}{gap_after(claim.text)}{citation_marks(claim, numbers)}"


def gap_after(text: str) -> str:
    """Return what parts a claim from its marks: behind a fence, a mark would open the block."""
    return "\n" if text.endswith(("```", "~~~")) else " "


def citation_marks(claim: Claim, numbers: dict[str, int]) -> str:
    """Return the marks that follow a claim, as in "[1][3]"."""
    own = dict.fromkeys(numbers[citation.chunk_id] for citation in claim.citations)
    return "".join(f"[{number}]" for number in own)


def address_of(source: str, section: str, metadata: Mapping[str, Any]) -> str:
    """Return a source with the anchor of the name that heads a section, where its index has one."""
    last = section.rsplit(" › ", 1)[-1]
    entries = metadata.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if entry.get("anchor") and entry.get("name") == last:
            return f"{source}#{entry['anchor']}"
    return source


def page_of(section: str, page: int | None) -> str:
    """Return "p. 3" or nothing: a section that begins with "Slide 3" says it already."""
    return f"p. {page}" if page and not f"{section} ".startswith(f"Slide {page} ") else ""


def place_of(section: str, page: int | None) -> str:
    """Return where a passage stands in its document: section and page, as far as known."""
    return " · ".join(part for part in (section, page_of(section, page)) if part)
