"""Outlook messages (.msg)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oxmsg import Message

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits, because
from ingest.loaders.mail import eml
from ingest.loaders.office.ole import is_ole
from ingest.loaders.text.plain_text import text_blocks
from ingest.types import Block, LoadFailure, ParsedDocument

if TYPE_CHECKING:
    from oxmsg import Message

_FIRST_YEAR = 1970


def load(path: Path, relative: str, limits: LoadLimits) -> Iterator[ParsedDocument | LoadFailure]:
    """Yield a message and the documents attached to it."""
    if not is_ole(path):
        raise DocumentError("no Outlook message: such a file is an OLE container")
    try:
        message = Message.load(path.read_bytes())
        found = _mail(message)
    except MemoryError:
        raise
    except Exception as error:  # damaged files raise anything
        raise DocumentError(f"the Outlook message is damaged{because(error)}") from error
    yield from eml.documents(found, relative, "msg", limits)


def _mail(message: Message) -> eml.Mail:
    sent = _safe(lambda: message.sent_date)
    recipients = _safe(lambda: [_person(one) for one in message.recipients]) or []
    return eml.Mail(
        subject=str(_safe(lambda: message.subject) or "").strip(),
        sender=str(_safe(lambda: message.sender) or "").strip(),
        to="; ".join(recipients),
        # An unset date is the beginning of Windows' time.
        date=sent.isoformat() if sent is not None and sent.year > _FIRST_YEAR else "",
        blocks=_blocks(message),
        attachments=_attachments(message),
    )


def _person(recipient: Any) -> str:  # noqa: ANN401
    name, address = recipient.name, recipient.email_address
    return f"{name} <{address}>" if name and name != address else address


def _blocks(message: Message) -> list[Block]:
    if text := _safe(lambda: message.body):
        return text_blocks(text.replace("\r\n", "\n"))
    marked = _safe(lambda: message.html_body)
    return eml.html_blocks(marked) if marked else []


def _attachments(message: Message) -> list[tuple[str, bytes]]:
    found = []
    for attachment in _safe(lambda: message.attachments) or ():
        name, data = _safe(partial(_named_bytes, attachment)) or ("", b"")
        if name and data:
            found.append((name.replace("\\", "/").rsplit("/", 1)[-1], data))
    return found


def _named_bytes(attachment: Any) -> tuple[str, bytes]:  # noqa: ANN401
    return str(attachment.file_name or ""), bytes(attachment.file_bytes or b"")


def _safe(read: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return what a property holds, or None: a damaged one must not cost the others."""
    try:
        return read()
    except MemoryError:
        raise
    except Exception:
        return None
