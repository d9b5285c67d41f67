"""What `carrel serve --mode prod` insists on before it lets anybody in."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from core.errors import OperatorError
from core.settings import Settings
from serve.access.hosts import is_loopback
from stores.folder import data_folder, open_to_others


def check_mode(settings: Settings, *, allow_anonymous: bool, nobody_has_a_key: bool) -> None:
    """Raise OperatorError, naming everything that is left open, unless the mode allows it."""
    if settings.serve.mode != "prod":
        return
    problems = list(_open_doors(settings))
    if allow_anonymous:
        problems.insert(0, "--allow-anonymous lets callers in without a key")
    elif nobody_has_a_key:
        problems.insert(0, "there is no good key (`carrel keys create`) and no signed token")
    if problems:
        raise OperatorError(
            f"prod does not start with these settings ({len(problems)}): {'; '.join(problems)}",
            hint="correct them, or use --mode dev on your own machine",
        )


def _open_doors(settings: Settings) -> Iterator[str]:
    if settings.jwt.public_key or settings.jwt.key:
        if not settings.jwt.audience:
            yield "jwt.audience is empty: tokens of other services would be good here"
        if not settings.jwt.issuer:
            yield "jwt.issuer is empty: anybody whom the key signs for would be good here"
    for name in ("serve.ask_rate", "serve.rate", "serve.wrong_keys"):
        if not settings.value(name):
            yield f"{name} is 0: nothing limits a caller"
    if not settings.audit.enabled:
        yield "audit is off"
    folder = data_folder(settings)
    if mode := open_to_others(folder):
        yield f"other users of this machine may enter the data directory (mode {mode}; chmod 700)"
    for origin in settings.serve.origins:
        if urlsplit(origin).scheme != "https" and not is_loopback(urlsplit(origin).hostname or ""):
            yield f"serve.origins has {origin}, which is not https"
    url = urlsplit(settings.llm.url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield "llm.url is another machine without https: questions and documents could be read"
