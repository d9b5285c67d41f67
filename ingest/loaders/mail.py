"""Letters: EML, mbox and Outlook's MSG; each attachment is read by the loader of its format."""

from __future__ import annotations

import base64
import email
import email.policy
import mimetypes
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError
from ingest.loaders import metadata
from ingest.loaders.archive import is_document, parse_member
from ingest.loaders.limits import MB, LoadLimits, report_damage
from ingest.loaders.office.ooxml import is_ole
from ingest.loaders.text import encoding
from ingest.loaders.text.plain_text import text_blocks
from ingest.loaders.web import html
from ingest.types import Block, Loaded, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from oxmsg import Message as OutlookMessage

_MAX_PARTS = 1000  # chosen, not measured
_MAX_DEPTH = 50  # a bound against hostile nesting; chosen, not measured
_WORD = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"<(style|script|head)\b.*?</\1>|<[^<>]*>", re.S | re.I)
# "Your program cannot show this message" stands for no text.
_MIN_PLAIN_SHARE = 0.2  # of the words; chosen, not measured
_SAME_SHARE = 0.9  # of the words of one form that the other has too; source not recorded
_READ_AS = {"text/plain": ".txt", "text/html": ".html"}
_HIGH = re.compile(rb"[\x80-\xff]")
_WESTERN = re.compile(r"iso[-_]?8859[-_]?1$|latin[-_]?1$|(?:windows[-_]|cp)1252$", re.I)


@dataclass
class Parts:
    """Texts in reading order, each with its kind ("plain", "html"), and what is attached."""

    texts: list[tuple[str, str]] = field(default_factory=list)
    attachments: list[tuple[str, bytes]] = field(default_factory=list)

    def words(self, kind: str) -> int:
        """Count the words of the texts of a kind."""
        return sum(len(_words(text)) for name, text in self.texts if name == kind)


class _MailReader:
    """Go through the parts; of the alternatives for one text, that which says it counts.

    A message of more than `_MAX_PARTS` is read up to there.
    """

    def __init__(self) -> None:
        self._left = _MAX_PARTS

    def read(self, part: Message, depth: int) -> Parts:
        self._left -= 1
        if self._left < 0:
            return Parts()
        kind = part.get_content_type()
        if kind == "message/rfc822" or not part.is_multipart():
            return _leaf(part, kind)
        if depth > _MAX_DEPTH:
            return Parts()
        inner = [
            self.read(one, depth + 1) for one in part.get_payload() if isinstance(one, Message)
        ]
        chosen = _chosen(inner) if kind == "multipart/alternative" else inner
        return Parts(
            _without_repeats([text for one in chosen for text in one.texts]),
            [named for one in inner for named in one.attachments],
        )


def _chosen(alternatives: list[Parts]) -> list[Parts]:
    """Return the plain version, unless it has next to no text of the HTML version."""
    plain = max(alternatives, key=lambda one: one.words("plain"), default=None)
    marked = max(alternatives, key=lambda one: one.words("html"), default=None)
    if plain is None or marked is None:
        return []
    few = plain.words("plain") < _MIN_PLAIN_SHARE * marked.words("html")
    return [marked if few or not plain.words("plain") else plain]


def _without_repeats(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leave out marked-up texts whose words stand in a plain one: not all mail says alternative."""
    plain = Counter(word for kind, text in texts if kind == "plain" for word in _words(text))
    if not plain:
        return texts
    return [(kind, text) for kind, text in texts if kind == "plain" or not _within(text, plain)]


def _within(text: str, plain: Counter[str]) -> bool:
    words = Counter(_words(text))
    return (words & plain).total() >= _SAME_SHARE * words.total()


def _words(text: str) -> list[str]:
    return _WORD.findall(_MARKUP.sub(" ", text).casefold())


def _leaf(part: Message, kind: str) -> Parts:
    name = _filename(part)
    if kind in ("text/plain", "text/html") and not name:
        text = _text(part)
        return Parts([(kind.removeprefix("text/"), text)]) if text.strip() else Parts()
    data = _data(part)
    if kind in _READ_AS and name and not is_document(name):
        name += _READ_AS[kind]
    return Parts(attachments=[(name or _invent_name(kind), data)]) if data else Parts()


def _invent_name(kind: str) -> str:
    suffix = mimetypes.guess_extension(kind) if not kind.startswith("text/") else ""
    return f"attachment{suffix}" if suffix else ""


def _filename(part: Message) -> str:
    try:
        name = part.get_filename() or ""
    except Exception:  # the header parser raises anything on malformed ones
        name = ""
    # A name is shown and stored, never opened: only its last part counts.
    name = re.split(r"[/\\]", str(name))[-1].replace("\x00", "").strip()
    if part.get_content_type() == "message/rfc822" and not name.lower().endswith(".eml"):
        return f"{name or 'message'}.eml"
    return name


def _data(part: Message) -> bytes:
    payload: Any = None
    try:
        payload = part.get_payload(decode=True)
        if part.get_content_type() == "message/rfc822":
            payload = b"".join(bytes(inner) for inner in part.get_payload())  # type: ignore[arg-type]
            if str(part.get("content-transfer-encoding")).strip().lower() == "base64":
                payload = base64.b64decode(payload)  # not allowed for messages, and done
    except Exception:  # broken encodings raise anything
        return b""
    return payload if isinstance(payload, bytes) else b""


def _text(part: Message) -> str:
    data = _data(part)
    if not data.strip():
        return ""
    named = part.get_content_charset() or ""
    if _WESTERN.match(named) and _HIGH.search(data):
        # Any bytes fit it, and programs name it for whatever they write.
        named = encoding.guess(data, named) or "cp1252"
    try:
        # The declared one may be wrong or made up; strict, to notice it.
        text = data.decode(named)
    except (LookupError, UnicodeDecodeError, ValueError):
        text = guess_text(data)
    return text.replace("\r\n", "\n")


def guess_text(data: bytes) -> str:
    """Decode what no encoding was named for."""
    try:
        return encoding.decode(data, ".eml")
    except DocumentError:
        return data.decode("latin-1")


_HEADERS = re.compile(
    rb"^(?:from|to|subject|date|received|message-id|mime-version|return-path):", re.I | re.M
)
_HEAD = 8192  # bytes in which headers are looked for; chosen, not measured
_TNEF = b"\x78\x9f\x3e\x22"
_TNEF_REASON = (
    "Outlook's own packing of a message (winmail.dat) is not read; save it as .msg or .eml"
)


@dataclass
class Mail:
    """Hold a message of any mail format: its headers, its text, and what is attached."""

    headers: dict[str, str]
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
    headers = mail.headers
    described = metadata.normalise(
        {
            "title": headers["Subject"],
            "authors": [headers["From"]],
            "to": headers["To"],
            "updated_at": headers["Date"],
        }
    )
    attached = [(name, data) for name, data in mail.attachments if is_document(name)]
    if not mail.blocks and not attached and not headers["Subject"]:
        raise DocumentError("an empty e-mail: no subject, no text and no document attached")
    # A message may be its subject only; "who wrote about X, and when" is asked of mail.
    heading = "\n".join(f"{name}: {value}" for name, value in headers.items() if value)
    blocks = [Block(text=heading), *mail.blocks]
    yield ParsedDocument.of_file(relative, format_name, blocks, described, headers["Subject"])
    for name, data in attached:
        if data.startswith(_TNEF):
            yield LoadFailure(path=f"{relative}/{name}", reason=_TNEF_REASON)
            continue
        yield from parse_member(f"{relative}/{name}", [data], limits)


def read(raw: bytes) -> Mail:
    """Parse a message; broken headers, encodings and boundaries give what can be read."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    headers = {name: _header(message, name.lower()) for name in ("Subject", "From", "To", "Cc")}
    parts = _MailReader().read(message, 0)
    mail = Mail(headers | {"Date": _date(message)}, attachments=parts.attachments)
    for kind, text in parts.texts:
        mail.blocks += html.blocks_of(text) if kind == "html" else text_blocks(text)
    names: dict[str, int] = {}
    for at, (name, data) in enumerate(mail.attachments):
        names[name] = names.get(name, 0) + 1
        mail.attachments[at] = (name if names[name] == 1 else f"{names[name]}-{name}", data)
    return mail


def _header(message: Message, name: str) -> str:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name), "")
    if any("\udc80" <= c <= "\udcff" for c in raw):
        # Bytes above ASCII that no encoding was named for.
        return " ".join(guess_text(raw.encode("utf-8", "surrogateescape")).split())
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


_FROM = re.compile(rb"From \S+ .*\d")
_QUOTED = re.compile(rb"^>(>*From )", re.M)


def load_mbox(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield the messages of a mailbox, numbered from 1, and the documents attached to them."""
    number = 0
    for number, raw in enumerate(_messages(path, limits), start=1):
        name = f"{relative}#{number}"
        try:
            yield from documents(read(raw), name, "mbox", limits)
        except DocumentError as error:
            yield LoadFailure(path=name, reason=error.rule)
    if not number:
        raise DocumentError("no mailbox: no line in it begins a message ('From …')")


def _messages(path: Path, limits: LoadLimits) -> Iterator[bytes]:
    """Yield one message at a time; a line "From …" at the start or after a blank begins one.

    A message over `ingest.max_file_mb` is cut off there.
    """
    lines: list[bytes] = []
    size, begun, blank = 0, False, True
    with path.open("rb") as handle:
        for line in handle:
            if blank and _FROM.match(line):
                if begun:
                    yield _QUOTED.sub(rb"\1", b"".join(lines))
                lines, size, begun = [], 0, True
            elif begun and size < limits.max_file_mb * MB:
                lines.append(line)
                size += len(line)
            blank = not line.strip()
    if begun:
        yield _QUOTED.sub(rb"\1", b"".join(lines))


_FIRST_YEAR = 1970  # the year of a date that was never set


def load_msg(path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
    """Yield a message and the documents attached to it."""
    if not is_ole(path):
        raise DocumentError("no Outlook message: such a file is an OLE container")
    from oxmsg import Message as OutlookMessage  # which other letters do without

    with report_damage("the Outlook message is damaged"):
        found = _mail(OutlookMessage.load(path.read_bytes()))
    yield from documents(found, relative, "msg", limits)


def _mail(message: OutlookMessage) -> Mail:
    sent = _safe(lambda: message.sent_date)
    recipients = _safe(lambda: [_person(one) for one in message.recipients]) or []
    return Mail(
        {
            "Subject": str(_safe(lambda: message.subject) or "").strip(),
            "From": str(_safe(lambda: message.sender) or "").strip(),
            "To": "; ".join(recipients),
            # An unset date is the beginning of Windows' time.
            "Date": sent.isoformat() if sent is not None and sent.year > _FIRST_YEAR else "",
        },
        blocks=_blocks(message),
        attachments=_attachments(message),
    )


def _person(recipient: Any) -> str:  # noqa: ANN401
    name, address = recipient.name, recipient.email_address
    return f"{name} <{address}>" if name and name != address else address


def _blocks(message: OutlookMessage) -> list[Block]:
    if text := _safe(lambda: message.body):
        return text_blocks(text.replace("\r\n", "\n"))
    marked = _safe(lambda: message.html_body)
    return html.blocks_of(marked) if marked else []


def _attachments(message: OutlookMessage) -> list[tuple[str, bytes]]:
    found = []
    for attachment in _safe(lambda: message.attachments) or ():
        name = _safe(partial(getattr, attachment, "file_name"))
        data = _safe(partial(getattr, attachment, "file_bytes"))
        if name and data:
            found.append((str(name).replace("\\", "/").rsplit("/", 1)[-1], bytes(data)))
    return found


def _safe(read: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the value of a property, or None: a damaged one must not cost the others."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception:
        return None
