"""E-mail (EML, mbox): a message is a document, and so is each document attached to it."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import DocumentError
from ingest.loaders import html, metadata
from ingest.loaders.limits import LoadLimits
from ingest.loaders.mail_parts import guessed, parts_of
from ingest.loaders.members import is_document, parse_member
from ingest.loaders.text import text_blocks
from ingest.types import Block, LoadFailure, ParsedDocument

Loaded = ParsedDocument | LoadFailure
_HEADERS = re.compile(
    rb"^(?:from|to|subject|date|received|message-id|mime-version|return-path):", re.I | re.M
)
_HEAD = 8192
_TNEF = b"\x78\x9f\x3e\x22"
_TNEF_REASON = (
    "Outlook's own packing of a message (winmail.dat) is not read; save it as .msg or .eml"
)


@dataclass
class Mail:
    """Hold a message of any mail format: its headers, its text, and what is attached."""

    subject: str = ""
    sender: str = ""
    to: str = ""
    cc: str = ""
    date: str = ""
    blocks: list[Block] = field(default_factory=list)
    attachments: list[tuple[str, bytes]] = field(default_factory=list)


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the message of an EML file and the documents attached to it."""
    raw = path.read_bytes()
    if not raw.strip():
        raise DocumentError("the file holds only white space")
    if not _HEADERS.search(raw[:_HEAD]):
        raise DocumentError("no e-mail: it has none of the headers of one")
    yield from documents(read(raw), relative, "eml", limits)


def documents(mail: Mail, relative: str, format_name: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the document of a message, then those of its attachments, one level deeper."""
    described = metadata.normalise(
        {"title": mail.subject, "authors": [mail.sender], "to": mail.to, "updated_at": mail.date}
    )
    blocks = mail.blocks
    attached = [(name, data) for name, data in mail.attachments if is_document(name)]
    if not blocks and not attached and not mail.subject:
        raise DocumentError("an empty e-mail: no subject, no text and no document attached")
    title = mail.subject or PurePosixPath(relative).stem
    yield ParsedDocument(
        document_id=relative,
        source=relative,
        title=title,
        format=format_name,
        # A message may be its subject only.
        blocks=[Block(text=_heading(mail)), *blocks],
        metadata=described,
    )
    for name, data in attached:
        if data.startswith(_TNEF):
            yield LoadFailure(path=f"{relative}/{name}", reason=_TNEF_REASON)
            continue
        yield from parse_member(f"{relative}/{name}", data, limits)


def _heading(mail: Mail) -> str:
    """Write the headers as text too: "who wrote about X, and when" is asked of mail."""
    named = {
        "Subject": mail.subject,
        "From": mail.sender,
        "To": mail.to,
        "Cc": mail.cc,
        "Date": mail.date,
    }
    return "\n".join(f"{name}: {value}" for name, value in named.items() if value)


def read(raw: bytes) -> Mail:
    """Parse a message; broken headers, encodings and boundaries give what can be read."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    mail = Mail(
        subject=_header(message, "subject"),
        sender=_header(message, "from"),
        to=_header(message, "to"),
        cc=_header(message, "cc"),
        date=_date(message),
    )
    parts = parts_of(message)
    mail.attachments = parts.attachments
    for kind, text in parts.texts:
        mail.blocks += html_blocks(text) if kind == "html" else text_blocks(text)
    names: dict[str, int] = {}
    for at, (name, data) in enumerate(mail.attachments):
        names[name] = names.get(name, 0) + 1
        mail.attachments[at] = (name if names[name] == 1 else f"{names[name]}-{name}", data)
    return mail


def html_blocks(text: str) -> list[Block]:
    """Return the blocks of a message written in HTML."""
    return [block for document in html.load("mail", text) for block in document.blocks]


def _header(message: Message, name: str) -> str:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    if any("\udc80" <= c <= "\udcff" for c in raw):
        # Bytes above ASCII that no encoding was named for.
        return " ".join(guessed(raw.encode("utf-8", "surrogateescape")).split())
    try:
        value = str(message.get(name) or "")
    except Exception:  # the header parser raises anything on malformed ones
        value = raw
    return " ".join(value.encode("utf-8", "replace").decode().split())


def _date(message: Message) -> str:
    try:
        found: Any = message["date"]
        when: datetime | None = found.datetime if found is not None else None
    except Exception:
        when = None
    return when.isoformat() if when is not None else ""
