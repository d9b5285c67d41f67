"""Read the settings again while the server runs, and take over those that can change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError

from core.auth import AuthContext
from core.errors import CallerError, CarrelError, OperatorError
from core.settings import FIELDS, LIVE, SECRETS, Settings, taken_over
from serve.access.audit import Audit
from serve.errors import Refused
from serve.telemetry.logs import log

Load = Callable[[], Settings]


@dataclass(frozen=True)
class Reloaded:
    """Say which settings changed, with the value before and now, and which wait for a restart."""

    changed: dict[str, tuple[Any, Any]]
    needs_restart: list[str]

    def describe(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        pairs = self.changed.items()
        changed = [{"name": name, "before": old, "after": new} for name, (old, new) in pairs]
        return {"changed": changed, "needs_restart": self.needs_restart}


class Reloadable(Protocol):
    """What takes over settings that were read again."""

    settings: Settings
    audit: Audit

    def use(self, settings: Settings) -> None:
        """Exchange the settings, for all that begins from now on."""


class Reload:
    """Exchange the settings as a whole; what runs goes on with those it began with."""

    def __init__(self, load: Load | None) -> None:
        """Read by `load`; without it there is nothing to read again."""
        self._load = load
        self._lock = threading.Lock()

    def now(self, services: Reloadable, auth: AuthContext | None) -> Reloaded:
        """Read the settings and take over what can be; raises Refused and changes nothing else.

        `auth` is None for the operator's signal.
        """
        with self._lock:
            old = services.settings
            try:
                new, wanted = self._read(old)
            except CarrelError as error:
                services.audit.record("settings", auth, refused=error.rule)
                hint = error.hint or "the settings stay as they were"
                raise Refused(
                    409, "invalid_settings", error.rule, value=error.value, hint=hint
                ) from None
            before, after = (one.shown() for one in (old, new))
            names = [name for name in before if before[name] != after[name]]
            done = Reloaded(
                {name: (before[name], after[name]) for name in names}, _waiting(new, wanted)
            )
            changed = {name: list(values) for name, values in done.changed.items()}
            facts: dict[str, Any] = {"changed": changed, "needs_restart": done.needs_restart}
            services.audit.record("settings", auth, **facts)
            services.use(new)
        return done

    def on_signal(self, services: Reloadable) -> None:
        """Read them again and log what came of it; for a thread of its own."""
        try:
            done = self.now(services, None)
        except CarrelError as error:
            log.error("the settings stay as they were: %s", error)
            return
        except Exception:
            log.exception("the settings stay as they were")
            return
        changed = ", ".join(f"{name}={value[1]}" for name, value in done.changed.items())
        log.warning("settings were read again; changed: %s", changed or "nothing")
        if done.needs_restart:
            log.warning("these need a restart: %s", ", ".join(done.needs_restart))

    def _read(self, old: Settings) -> tuple[Settings, Settings]:
        if self._load is None:
            raise OperatorError("this server was started without settings that can be read again")
        wanted = self._load()
        try:
            return taken_over(old, wanted), wanted
        except ValidationError as error:
            rule = error.errors()[0]["msg"].removeprefix("Value error, ")
            hint = "some of these need a restart"
            raise CallerError(rule, hint=hint) from None


def _waiting(new: Settings, wanted: Settings) -> list[str]:
    """Return the settings that have another value in the file than in force, secrets too."""
    return sorted(
        name for name in FIELDS if name not in LIVE and new.value(name) != wanted.value(name)
    )


assert not SECRETS & LIVE  # their values are reported
