"""The page of a document as it looks, drawn from its file, with cited words marked."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Sequence
from pathlib import Path

from app.session import Session
from core.auth import AuthContext
from core.errors import AbsentError, DocumentError
from ingest.loaders.formats import format_of
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import ChildEndedError, ParserProcess
from stores.sqlite.catalogue import Collection

WORKER = "ingest.sandbox.page_worker"
DRAWN = ("pdf", "image")  # formats whose pages are pictures
MOST_BYTES = 64 * 2**20  # of a picture in base64; chosen, not measured
NO_PICTURE = "there is no picture of this page"


def page_picture(
    session: Session,
    auth: AuthContext,
    collection: Collection,
    document_id: str,
    page: int,
    quotes: Sequence[str],
) -> bytes:
    """Return a page of a document that the caller may see as a PNG, the quotes in it marked.

    Raises AbsentError where its file is not there any more, or not as it was read: another file may
    hold what this caller may not see. The file is opened in a process that can do nothing else.
    """
    found = session.catalogue.file_of(auth, collection, document_id)
    if found is None:
        raise AbsentError(NO_PICTURE, value=document_id)
    path, indexed_at = Path(found[0]), found[1]
    if format_of(path.name) not in DRAWN:
        hint = "only a PDF or a picture is shown as it looks; its text is in /documents/passages"
        raise AbsentError(NO_PICTURE, value=document_id, hint=hint)
    if not _is_as_read(path, indexed_at):
        raise AbsentError(NO_PICTURE, value=document_id, hint="its file has changed or is gone")
    limits = LoadLimits.of(session.settings)
    job = {"path": str(path), "page": page, "quotes": list(quotes), "limits": limits.model_dump()}
    process = ParserProcess(WORKER)
    try:
        process.send(job)
        answer = json.loads(process.line(limits.timeout_s + limits.ocr_timeout_s, MOST_BYTES))
    except (ChildEndedError, TimeoutError, DocumentError):
        answer = {"error": "the page cannot be drawn"}
    finally:
        process.close()
    if "error" in answer:
        raise AbsentError(NO_PICTURE, value=answer["error"])
    return base64.b64decode(answer["png"])


def _is_as_read(path: Path, indexed_at: str) -> bool:
    """Tell whether a file was neither written nor put there since it was read."""
    try:
        found = path.stat()
    except OSError:
        return False
    read = datetime.datetime.fromisoformat(indexed_at).replace(tzinfo=datetime.UTC).timestamp()
    return max(found.st_mtime, found.st_ctime) <= read + 1  # which is kept in whole seconds
