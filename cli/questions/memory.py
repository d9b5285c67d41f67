"""`carrel memory`: the notes of a user, listed, shown, edited, exported and deleted by them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import Json, Yes
from cli.options import (
    CallerOptions,
    opened,
    opened_catalogue,
    storable,
    with_options,
    working,
)
from cli.server.access import record
from cli.terminal.answer import shortened
from cli.terminal.output import ask_to_erase, print_json, stdout
from cli.upkeep.forget import CHANGED, of_counts
from core.notes import Note, OwnerEdit, TurnSource, origin_of

WIDTH = 90  # characters of a note in the list; chosen, not measured

app = typer.Typer(help="List, show, edit, export and delete what is remembered of a user.")

NoteId = Annotated[str, typer.Argument(metavar="NOTE_ID", help="Its id.", show_default=False)]


@app.command("list")
@with_options
def list_notes(options: CallerOptions, as_json: Json = False) -> None:
    """List the notes of a user, newest first, superseded ones too."""
    with opened_catalogue(options.settings()) as opened:
        notes = opened.notes.list_notes(options.auth)
    if as_json:
        print_json({"notes": [one.describe() for one in notes]})
        return
    if not notes:
        stdout().print("nothing is remembered of this user")
    for one in notes:
        line = f"{one.note_id}  {one.observed_at[:16]}  {shortened(one.content, WIDTH)}"
        stdout().print(f"{escape(line)}[dim]{escape(_standing(one))}[/dim]")


@app.command("show")
@with_options
def show(note_id: NoteId, options: CallerOptions, as_json: Json = False) -> None:
    """Show a note, its source and its links."""
    auth = options.auth
    with opened_catalogue(options.settings()) as opened:
        note = opened.notes.load_note(auth, storable(note_id))
        linked = opened.notes.load_notes(auth, [one.note_id for one in note.links])
    if as_json:
        print_json(note.describe())
        return
    lines = [
        f"{note.content}{_standing(note)}",
        f"stated {note.observed_at[:19]}, changed {note.changed_at[:19]}",
        f"from {_origin(note)}",
        f"keywords: {', '.join(note.keywords)}; tags: {', '.join(note.tags)}",
        *([f"said with: {note.context}"] if note.context else []),
        *(
            f"{one.kind}: {one.note_id}  {other.observed_at[:16]}  {other.content}"
            for one in note.links
            if (other := linked.get(one.note_id)) is not None
        ),
    ]
    for line in lines:
        stdout().print(escape(line))


@app.command("edit")
@with_options
def edit(
    note_id: NoteId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it says from now on.")],
    options: CallerOptions,
    as_json: Json = False,
) -> None:
    """Write a new version of a note; the one before stays, superseded."""
    with opened_catalogue(options.settings()) as opened:
        note = opened.notes.edit_note(options.auth, storable(note_id), storable(text))
    if as_json:
        print_json(note.describe())
    else:
        stdout().print(escape(f"{note.note_id} says: {note.content}"))


@app.command("delete")
@with_options
def delete(
    note_id: NoteId, options: CallerOptions, yes: Yes = False, as_json: Json = False
) -> None:
    """Delete a note, its edits and what rests on it, for good; what it replaced holds again.

    It shows what goes, and asks; without a terminal it needs --yes. What the user typed stays:
    `carrel conversations delete` removes that.
    """
    settings, auth = options.settings(), options.auth
    with opened(settings) as session:
        note = session.notes.load_note(auth, storable(note_id))
        if not yes:
            counts = session.notes.would_delete_note(auth, note.note_id)
            shown = f"note {note.note_id} “{shortened(note.content, WIDTH)}”"
            ask_to_erase(f"{shown} ({of_counts(counts)}); {typed_in(note)}")
        with working(session, "memory delete", quiet=as_json):
            counts = session.notes.delete_note(auth, note.note_id)
            record(
                session.accounts,
                *(settings, "deletion", auth.tenant),
                user=auth.user,
                note=note.note_id,
            )
            session.maintenance.tidy()
    if as_json:
        traces = {kind: counts[kind] for kind in CHANGED if counts[kind]}
        print_json({"note_id": note.note_id, "deleted": counts["notes"], "traces": traces})
    else:
        stdout().print(escape(f"{note.note_id} is deleted ({of_counts(counts)}); {typed_in(note)}"))


@app.command("export")
@with_options
def export(options: CallerOptions, as_json: Json = False) -> None:
    """Print all notes of a user as JSON."""
    with opened_catalogue(options.settings()) as opened:
        notes = opened.notes.list_notes(options.auth)
    print_json({"notes": [one.describe() for one in notes]})


def typed_in(note: Note) -> str:
    """Say what stays of a note that is deleted."""
    talk = origin_of(note.provenance).conversation
    return f"what you typed stays in conversation {talk}" if talk else "what you typed stays"


def _standing(note: Note) -> str:
    """Say whether a later note has taken its place, or another one contradicts it."""
    if note.superseded_by:
        return f" (superseded {note.superseded_at[:16]} by {note.superseded_by})"
    against = [one.note_id for one in note.links if one.kind == "contradicts"]
    return f" (contradicts {', '.join(against)})" if against else ""


def _origin(note: Note) -> str:
    source = note.provenance
    if isinstance(source, OwnerEdit):
        return f"an edit by its owner, over {source.earlier}"
    if isinstance(source, TurnSource):
        return f"what was typed in conversation {source.conversation}, run {source.run_id}"
    named = ", ".join(dict.fromkeys(one.source for one in source.citations))
    return f"the answer of run {source.run_id}, which cites {named}"
