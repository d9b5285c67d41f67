"""Dialogues to be remembered: their turns and questions, and the memory that is made of them."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.notes import NoteDraft, TurnSource
from core.settings import Settings
from evals.corpus import AUTH, COLLECTION, FOLDER, Progress, build_documents, open_corpus
from evals.dataset import DOCUMENT, QUERY, find_file, object_id, read_objects
from models.loading import open_embedded
from reasoning.statements import find_statements
from reasoning.worth import Worth, worth_by
from stores.runlog.conversations import Conversation, KeptTurn
from stores.sqlite.rows import digest
from tools.note_tools import SPEAKER

SPOKEN = re.compile(r"([^\W\d_][\w .'’-]{0,40}): +(\S.*)")
JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of names that are written as one word
WRITTEN = re.compile(r"\w+")
TIMES = ("%I:%M %p on %d %B, %Y", "%Y%m%d_%H:%M", "%Y%m%d", "%Y-%m-%d %H:%M", "%d %B, %Y")
UNKNOWN = "0001-01-01T00:00:00+00:00"


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


def read_questions(
    folder: Path, limit: int | None, turns: Sequence[DialogueTurn] = ()
) -> list[MemoryQuestion]:
    """Read `limit` questions of each category, from all parts of the file; all for None.

    Names of speakers that are written as one word are taken apart, as in the turns.
    """
    names = {one.speaker.replace(" ", ""): one.speaker for one in turns if " " in one.speaker}

    def plain(text: str) -> str:
        return WRITTEN.sub(lambda word: names.get(word[0], word[0]), text)

    found: dict[str, list[MemoryQuestion]] = defaultdict(list)
    for place, one in read_objects(find_file(folder, "queries.jsonl", "queries.jsonl.gz"), QUERY):
        metadata = one.get("metadata") or {}
        gold, category = metadata.get("answer"), str(metadata.get("type") or "all")
        accepted = gold if isinstance(gold, list) else [gold]
        text = "" if gold is None else ", ".join(map(str, accepted))
        dialogue = str(metadata.get("conversation_id") or "")
        name = object_id(place, one, QUERY)
        found[category].append(
            MemoryQuestion(name, plain(str(one.get("text") or "")), plain(text), category, dialogue)
        )
    return [
        one
        for rows in found.values()
        for one in rows[:: len(rows) // (limit or len(rows)) or 1][:limit]
    ]


def drafts_of(
    turns: Sequence[DialogueTurn], worth: Worth, *, every_turn: bool
) -> list[list[NoteDraft]]:
    """Return for each turn the notes to write: what it states, or all of it with `every_turn`.

    What stands for the conversation and the run is filled in when it is written.
    """
    return [_drafts(turn, worth, every_turn=every_turn) for turn in turns]


def _drafts(turn: DialogueTurn, worth: Worth, *, every_turn: bool) -> list[NoteDraft]:
    source = TurnSource(conversation="-", run_id="-", quote=turn.text)
    whole = [NoteDraft(content=turn.text, provenance=source, language="en")]
    made = whole if every_turn else find_statements(turn.text, source, worth)
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
    worth = worth_by(open_embedded(settings))
    drafts = drafts_of(turns, worth, every_turn=every_turn)
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
        stated = "\n".join(one.content for one in drafts)  # what the notes quote, with who said it
        kept = KeptTurn(run_id=run_id, question=stated, clarification=None, reply="")
        session.runs.save_turn(talk, kept, "", title=turn.session)
        for one in drafts:
            source = TurnSource(conversation=talk.id, run_id=run_id, quote=one.content)
            yield one.model_copy(update={"provenance": source})
