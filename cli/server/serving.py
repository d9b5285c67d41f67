"""Settings, socket and lock of a server, which come before what takes long to load."""

from __future__ import annotations

from pathlib import Path

from cli.options import flags_from, opened
from core.errors import CallerError
from core.settings import Settings, load_settings
from serve.access.network import is_loopback, listening_socket
from serve.telemetry.logs import log_to_stderr


def run_server(
    data: Path | None,
    changes: list[str] | None,
    given: dict[str, str | int],
    file: str | None,
    *,
    allow_anonymous: bool,
) -> int:
    """Serve a data directory until stopped, and return the exit code."""
    flags = flags_from(data, changes) | given

    def load() -> Settings:
        return load_settings(flags, file=file)[0]

    settings = load()
    if allow_anonymous and not is_loopback(settings.serve.host):
        raise CallerError(
            "callers without a key are let in on this machine's own addresses only",
            value=settings.serve.host,
            hint="leave --allow-anonymous out and make keys with `carrel keys create`",
        )
    bound = listening_socket(settings.serve.host, settings.serve.port)
    try:
        log_to_stderr(settings)
        with opened(settings, create=True, alone=True, check_later=True) as session:
            from cli.server.hosting import serve_session  # late: who is refused loads no server

            return serve_session(session, settings, bound, load, allow_anonymous=allow_anonymous)
    finally:
        bound.close()
