"""Limits of a request's body: bytes, and seconds until all of it is there."""

from __future__ import annotations

import asyncio
import time

from starlette.types import Message, Receive, Scope

from core.settings import Settings
from serve.errors import Refused

UPLOADS = "/api/v1/documents"


class BodyLimit:
    """Bound what each request may send; raises Refused where the body is read."""

    def __init__(self, settings: Settings) -> None:
        """Take the limits from the settings."""
        self._settings = settings

    def use(self, settings: Settings) -> None:
        """Keep to other limits from the next request on."""
        self._settings = settings

    def limited(self, scope: Scope, length: str | None, receive: Receive) -> Receive:
        """Return a `receive` that keeps the limits; a declared length too large raises at once."""
        settings = self._settings
        upload = scope["method"] == "POST" and scope["path"] == UPLOADS
        most = settings.serve_upload_bytes if upload else settings.serve_body_bytes
        declared = int(length) if length is not None and length.isdecimal() else 0
        if declared > most:
            raise _too_large(most)
        until = time.monotonic() + settings.serve_body_seconds
        received, whole = 0, False

        async def bounded() -> Message:
            nonlocal received, whole
            if whole:
                return await receive()  # waits for the client to leave
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                rule = f"a body arrives within {settings.serve_body_seconds:g} s"
                raise Refused(408, "too_slow", rule, hint="send it again") from None
            received += len(message.get("body", b""))
            whole = message["type"] != "http.request" or not message.get("more_body", False)
            if received > most:
                raise _too_large(most)
            return message

        return bounded


def _too_large(most: int) -> Refused:
    hint = "send less; the operator allows more with CARREL_SERVE_BODY_BYTES or _UPLOAD_BYTES"
    return Refused(413, "too_large", f"a body here has at most {most} bytes", hint=hint)
