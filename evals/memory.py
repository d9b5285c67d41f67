"""Ask what dialogues tell: from memory, by plain retrieval over their turns, and without either."""

from __future__ import annotations

import datetime
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.notes import NoteDraft, TurnSource
from core.recall import NOTE
from core.settings import Settings
from core.trace import RunRecord
from core.types import Claim, Evidence
from evals.corpus import AUTH, COLLECTION, FOLDER, Progress, build_documents, open_corpus
from evals.dataset import DOCUMENT, QUERY, find_file, object_id, read_objects
from evals.memory_scores import METRICS, NOT_MENTIONED, scores
from evals.summary import (
    CONFIDENCE,
    DIGITS,
    compare_pairs,
    difference_json,
    intervals,
    percentile,
    round_interval,
)
from graph.asking import ActiveRun
from reasoning.rules.answering.headings import LED
from reasoning.rules.recall import AT_ONCE, questions_of, short_claim
from reasoning.statements import find_statements
from stores.runlog.conversations import Conversation, KeptTurn
from stores.sqlite.rows import digest
from tools.note_tools import SPEAKER, note_evidence

MemoryPipeline = Literal["memory", "retrieval", "none"]
PIPELINES: tuple[MemoryPipeline, ...] = get_args(MemoryPipeline)
SPOKEN = re.compile(r"([^\W\d_][\w .'’-]{0,40}): +(\S.*)")
JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of names that are written as one word
TIMES = ("%I:%M %p on %d %B, %Y", "%Y%m%d_%H:%M", "%Y%m%d", "%Y-%m-%d %H:%M", "%d %B, %Y")
UNKNOWN = "0001-01-01T00:00:00+00:00"
ENOUGH = 2  # the grade from which evidence answers


@dataclass(frozen=True)
class DialogueTurn:
    """Hold what one speaker said in a session of a dialogue, and when (ISO 8601)."""

    dialogue: str
    session: str
    speaker: str
    text: str
    stated_at: str


@dataclass(frozen=True)
class MemoryQuestion:
    """Hold a question about a dialogue; `gold` is "" where it tells no answer."""

    query_id: str
    text: str
    gold: str
    category: str
    dialogue: str


@dataclass(frozen=True)
class MemoryOutcome:
    """Hold the short answer to a question with its scores, and the run that gave it."""

    question: MemoryQuestion
    answer: str
    metrics: dict[str, float]
    ms: float
    trail: list[dict[str, Any]] = field(default_factory=list)


def checked_memory_pipeline(name: str) -> MemoryPipeline:
    """Return the name of what answers, or say which there are."""
    for known in PIPELINES:
        if name == known:
            return known
    raise CallerError(
        "the pipeline must be one that asks a dialogue",
        value=name,
        hint=f"choose from {', '.join(PIPELINES)}",
    )


def read_turns(folder: Path) -> list[DialogueTurn]:
    """Read the turns of all dialogues: a line "Name: text" each, or a document without such."""
    found: list[DialogueTurn] = []
    path = find_file(folder, "corpus.jsonl", "corpus.jsonl.gz")
    for place, one in read_objects(path, DOCUMENT):
        metadata = one.get("metadata") or {}
        name, text = object_id(place, one, DOCUMENT), str(one.get("text") or "")
        dialogue = str(metadata.get("conversation") or "")
        when = _time(str(metadata.get("date_time") or ""), text.partition("\n")[0][6:], name)
        session = str(metadata.get("session") or name)
        for line in text.splitlines():
            if spoken := SPOKEN.fullmatch(line.strip()):
                speaker = JOINED.sub(" ", spoken[1])
                if speaker != "Time":
                    found.append(DialogueTurn(dialogue, session, speaker, spoken[2], when))
    if not found:
        raise CallerError("the corpus must hold turns of dialogues", value=str(path), hint=DOCUMENT)
    return found


def _time(*written: str) -> str:
    for text in written:
        for form in TIMES:
            with suppress(ValueError):
                when = datetime.datetime.strptime(text.strip(), form)
                return when.replace(tzinfo=datetime.UTC).isoformat()
    return UNKNOWN


def read_questions(folder: Path, limit: int | None) -> list[MemoryQuestion]:
    """Read `limit` questions of each category, from all parts of the file; all for None."""
    found: dict[str, list[MemoryQuestion]] = defaultdict(list)
    for place, one in read_objects(find_file(folder, "queries.jsonl", "queries.jsonl.gz"), QUERY):
        metadata = one.get("metadata") or {}
        gold, category = metadata.get("answer"), str(metadata.get("type") or "all")
        accepted = gold if isinstance(gold, list) else [gold]
        text = "" if gold is None else ", ".join(map(str, accepted))
        dialogue = str(metadata.get("conversation_id") or "")
        name = object_id(place, one, QUERY)
        found[category].append(
            MemoryQuestion(name, str(one.get("text") or ""), text, category, dialogue)
        )
    return [one for rows in found.values() for one in rows[:: _every(len(rows), limit)][:limit]]


def _every(count: int, limit: int | None) -> int:
    return max(1, count // limit) if limit else 1


def drafts_of(turns: Sequence[DialogueTurn], *, every_turn: bool) -> list[list[NoteDraft]]:
    """Return for each turn the notes to write: what it states, or all of it with `every_turn`.

    What stands for the conversation and the run is filled in when it is written.
    """
    return [_drafts(turn, every_turn=every_turn) for turn in turns]


def _drafts(turn: DialogueTurn, *, every_turn: bool) -> list[NoteDraft]:
    source = TurnSource(conversation="-", run_id="-", quote=turn.text)
    whole = [NoteDraft(content=turn.text, provenance=source, language="en")]
    made = whole if every_turn else find_statements(turn.text, source)
    named = {
        "tags": [f"{SPEAKER}{turn.speaker}"],
        "observed_at": turn.stated_at,
        "subject": "",  # of several speakers, none of whom owns the memory
        "replaces": False,
    }
    return [
        one.model_copy(update={**named, "content": f"{turn.speaker}: {one.content}"[:2000]})
        for one in made
    ]


def build_memory(
    turns: Sequence[DialogueTurn], settings: Settings, progress: Progress, *, every_turn: bool
) -> tuple[Settings, dict[str, int]]:
    """Write the notes of all dialogues, each to a user of its own, or find them written."""
    drafts = drafts_of(turns, every_turn=every_turn)
    content = digest(*(one.content for row in drafts for one in row), *(t.stated_at for t in turns))
    opened = build_documents([_document(settings, content)], settings, progress, None).settings
    by_dialogue: dict[str, list[tuple[DialogueTurn, list[NoteDraft]]]] = defaultdict(list)
    for turn, row in zip(turns, drafts, strict=True):
        by_dialogue[turn.dialogue].append((turn, row))
    with open_corpus(opened) as session:
        for done, (dialogue, rows) in enumerate(by_dialogue.items(), start=1):
            auth = user_of(dialogue)
            if not session.notes.list_notes(auth, limit=1):
                session.memory(auth).remember(auth, list(_founded(session, auth, rows)))
            progress("notes", done, len(by_dialogue))
    return opened, {"turns": len(turns), "written": sum(map(len, drafts))}


def _document(settings: Settings, content: str) -> Path:
    """Write the one document beside memory, which says nothing of the dialogues, and name it."""
    folder = settings.cache.expanduser() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{content}.txt"
    path.write_text(f"This collection is asked beside memory {content}.\n", encoding="utf-8")
    return path


def user_of(dialogue: str) -> AuthContext:
    """Return the user whose memory holds a dialogue."""
    return AuthContext(tenant=AUTH.tenant, user=dialogue or "one")


def _founded(
    session: Session, auth: AuthContext, rows: Sequence[tuple[DialogueTurn, list[NoteDraft]]]
) -> Iterator[NoteDraft]:
    """Keep the turns that notes are made of, and yield those with what they rest on."""
    talks: dict[str, Conversation] = {}
    for place, (turn, drafts) in enumerate(rows):
        if not drafts:
            continue
        if turn.session not in talks:
            talks[turn.session] = session.runs.create_conversation(
                auth.tenant, auth.user, COLLECTION
            )
        talk, run_id = talks[turn.session], f"{auth.user}-{place}"
        kept = KeptTurn(run_id=run_id, question=turn.text, clarification=None, reply="")
        session.runs.save_turn(talk, kept, "", title=turn.session)
        for one in drafts:
            source = TurnSource(conversation=talk.id, run_id=run_id, quote=turn.text)
            yield one.model_copy(update={"provenance": source})


def ask_memory(session: Session, question: MemoryQuestion, pipeline: MemoryPipeline) -> RunRecord:
    """Put a question to the graph, with memory or without it."""
    auth = user_of(question.dialogue)
    context = session.context(auth, COLLECTION, remembers=pipeline == "memory")
    return session.asking.alone(ActiveRun(question.text, COLLECTION, context), [])


def short_answer(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> str:
    """Return the values that claims say, or that nothing is mentioned."""
    sections = {one.evidence_id: one.section for one in evidence if one.kind == NOTE}
    texts: list[str] = []
    for claim in claims:
        lead, mark, _ = claim.text.partition(LED)
        own = sections.get(claim.citations[0].evidence_id)
        texts.append(lead if mark and lead == own else claim.text)
    return ", ".join(dict.fromkeys(texts)) or NOT_MENTIONED


def retrieve_turns(session: Session, question: MemoryQuestion) -> str:
    """Answer from the turns that one search finds, whoever said them and whenever."""
    auth = user_of(question.dialogue)
    reasoner = session.context(auth, COLLECTION).reasoner
    found = session.memory(auth).search(auth, question.text, AT_ONCE)
    evidence = [
        note_evidence(one.note, "search", question.text, one.score).model_copy(
            update={"text": one.note.content, "title": "", "section": "", "kind": "text"}
        )
        for one in found
    ]
    query = reasoner.understand(question.text, [])
    asked = questions_of(query, question.text)
    sub = asked.questions[0]
    graded = {one.evidence_id: one.grade for one in reasoner.grade(sub, evidence)}
    good = [
        one.model_copy(update={"grades": {sub.id: graded[one.evidence_id]}})
        for one in evidence
        if graded.get(one.evidence_id, 0) >= ENOUGH
    ]
    if not good:
        return NOT_MENTIONED
    draft, values = reasoner.answer(query, asked, good), reasoner.extract(sub, good)
    by_id = {one.evidence_id: one for one in good}
    claims = [
        short_claim(one, sub, by_id[one.citations[0].evidence_id], values) for one in draft.claims
    ]
    return short_answer(claims, good)


def run_memory(
    opened: Settings,
    questions: Sequence[MemoryQuestion],
    pipeline: MemoryPipeline,
    progress: Progress,
) -> list[MemoryOutcome]:
    """Ask all questions of one pipeline and score the answers."""
    outcomes: list[MemoryOutcome] = []
    with open_corpus(opened) as session:
        for done, question in enumerate(questions, start=1):
            began, trail = time.perf_counter(), []
            if pipeline == "retrieval":
                answer = retrieve_turns(session, question)
            else:
                run = ask_memory(session, question, pipeline)
                answer = short_answer(run.answer.claims, run.evidence)
                trail = [step.model_dump(mode="json") for step in run.trail]
            ms = round((time.perf_counter() - began) * 1000, 1)
            metrics = scores(answer, question.gold, question.category)
            outcomes.append(MemoryOutcome(question, answer, metrics, ms, trail))
            progress(pipeline, done, len(questions))
    return outcomes


def evaluate_memory(
    folder: Path,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
    limit: int | None = None,
    every_turn: bool = False,
) -> tuple[dict[str, Any], list[MemoryOutcome]]:
    """Return the figures as `carrel eval memory --json` prints them, and every question's run."""
    chosen = checked_memory_pipeline(pipeline)
    other = checked_memory_pipeline(against) if against is not None else None
    turns, questions = read_turns(folder), read_questions(folder, limit)
    opened, counts = build_memory(turns, settings, progress, every_turn=every_turn)
    mine = run_memory(opened, questions, chosen, progress)
    result = {
        "dataset": folder.resolve().name,
        "pipeline": chosen,
        "confidence": CONFIDENCE,
        "notes": counts,
        **_figures(mine, settings),
    }
    if other is not None:
        # Plain retrieval is over turns, whatever of them memory keeps.
        whole = opened
        if other == "retrieval" and not every_turn:
            whole, _ = build_memory(turns, settings, progress, every_turn=True)
        theirs = run_memory(whole, questions, other, progress)
        result["against"] = {
            "pipeline": other,
            **_figures(theirs, settings),
            "differences": _differences(mine, theirs, settings),
        }
    return result, mine


def _figures(outcomes: Sequence[MemoryOutcome], settings: Settings) -> dict[str, Any]:
    times = [one.ms for one in outcomes]
    latency = {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}
    by_category: dict[str, list[MemoryOutcome]] = defaultdict(list)
    for one in outcomes:
        by_category[one.question.category].append(one)
    return {
        **_means(outcomes, settings),
        "by_category": {name: _means(rows, settings) for name, rows in by_category.items()},
        "latency_ms": {name: round(value, 1) for name, value in latency.items()},
    }


def _means(outcomes: Sequence[MemoryOutcome], settings: Settings) -> dict[str, Any]:
    columns = [[one.metrics[name] for one in outcomes] for name in METRICS]
    bounds = intervals(columns, settings)
    return {
        "n": len(outcomes),
        "metrics": {
            name: round(sum(column) / len(column), DIGITS)
            for name, column in zip(METRICS, columns, strict=True)
        },
        "ci": {name: round_interval(b) for name, b in zip(METRICS, bounds, strict=True)},
    }


def _differences(
    mine: Sequence[MemoryOutcome], theirs: Sequence[MemoryOutcome], settings: Settings
) -> dict[str, Any]:
    """Compare two pipelines question by question, whole and by category of F1."""
    pairs = list(zip(mine, theirs, strict=True))
    found = {"f1": compare_pairs(((a.metrics["f1"], b.metrics["f1"]) for a, b in pairs), settings)}
    for name in dict.fromkeys(one.question.category for one in mine):
        rows = [(a.metrics["f1"], b.metrics["f1"]) for a, b in pairs if a.question.category == name]
        found[name] = compare_pairs(rows, settings)
    return difference_json({name: one for name, one in found.items() if one is not None})
