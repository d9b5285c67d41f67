"""What the options mean that several commands share: settings, and an opened data directory."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from cli.arguments import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    DEFAULT_USER,
    Collections,
    Data,
    Roles,
    Set,
    Sources,
    Tenant,
    User,
    VersionPolicy,
    Where,
    insecure,
    named_path,
)
from cli.server.remote import ServerOwns, asked
from cli.server.running import host
from cli.terminal.output import check_interrupted, stderr, warn
from core.auth import AuthContext, checked_sources
from core.errors import CallerError, CarrelError, StorageError
from core.question import joined_names
from core.settings import PATHS, Settings, known_values, load_settings
from core.settings_sources import variables
from stores.folder import CATALOGUE, private_files
from stores.lock import OwnedError, OwnerLock, locked, read_owner
from stores.sqlite.database import damaged
from stores.sqlite.implementation import opened_record

if TYPE_CHECKING:
    from app.session import Session
    from stores.ports import Record
    from stores.sqlite.catalogue import Collection

STARTING_SECONDS, POLL_SECONDS = 20.0, 0.2  # a server listens after 9 to 13 s at 2 busy cores
COLLECTION, ALL = "CARREL_COLLECTION", "*"
LONGEST_VERSION = 64  # as a key's version_policy over HTTP


@dataclass(frozen=True)
class AskOptions:
    """Who asks, in which collections and documents, and under which settings."""

    collection: Collections = None
    tenant: Tenant = DEFAULT_TENANT
    user: User = DEFAULT_USER
    role: Roles = None
    source: Sources = None
    version_policy: VersionPolicy = "any"
    where: Where = None
    data: Data = None
    changes: Set = None

    def collections_in(self, kept: Record | Session) -> str:
        """Return the collections as one text: those named, "default", or the only one there is.

        A star names all that the caller sees.
        """
        return collections_of(kept, self.auth, self.collection)

    def check_collections(self, kept: Record) -> None:
        """Raise CallerError unless the caller may ask the collections; no model is loaded yet."""
        kept.catalogue.collections_named(self.auth, self.collections_in(kept))

    @property
    def filters(self) -> list[str]:
        """Return the filters that documents must meet."""
        return storables(self.where)

    @property
    def auth(self) -> AuthContext:
        """Return who is asking."""
        return caller(self.tenant, self.user, self.role, self.source, self.version_policy)

    def settings(self, stream: str | None = None) -> Settings:
        """Return the settings that flags and environment give."""
        return settings_from(self.data, self.changes, stream)


def collections_of(kept: Record | Session, auth: AuthContext, given: list[str] | None) -> str:
    """Return the collections as one text: those given, "default", or the only one there is.

    A star is all that the caller sees.
    """
    named = storables(given) or [one for one in (variables().get(COLLECTION, ""),) if one]
    if named in ([], [ALL]):
        known = [one.name for one in kept.catalogue.visible_collections(auth)]
        named = known if named or len(known) == 1 else []
    return joined_names(named or [DEFAULT_COLLECTION])


def collection_of(kept: Record | Session, auth: AuthContext, given: str | None) -> Collection:
    """Return the one collection that a command reads, chosen as by `collections_of`."""
    name = collections_of(kept, auth, [given] if given else None)
    return kept.catalogue.visible_collection(auth, name)


def collection_to_fill(given: str | None) -> str:
    """Return the collection that a command fills: that given, CARREL_COLLECTION, or "default"."""
    return storable(given or variables().get(COLLECTION, "") or DEFAULT_COLLECTION)


@dataclass(frozen=True)
class CallerOptions:
    """Who looks, and at which data directory."""

    tenant: Tenant = DEFAULT_TENANT
    user: User = DEFAULT_USER
    role: Roles = None
    data: Data = None

    @property
    def auth(self) -> AuthContext:
        """Return who looks."""
        return caller(self.tenant, self.user, self.role)

    def settings(self) -> Settings:
        """Return the settings that flags and environment give."""
        return settings_from(self.data)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its parameter `options`, an `AskOptions` for example."""
    own = inspect.signature(command, eval_str=True).parameters
    made = own["options"].annotation
    block = inspect.signature(made, eval_str=True).parameters

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - whatever Typer reads
        options = made(**{name: given.pop(name) for name in block})
        command(**given, options=options)

    shown: list[inspect.Parameter] = []
    for name, one in own.items():
        shown += block.values() if name == "options" else [one]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def caller(
    tenant: str,
    user: str,
    roles: list[str] | None,
    sources: list[str] | None = None,
    version_policy: str = "any",
) -> AuthContext:
    """Return who is asking; the person at this machine vouches for it, and is it by default."""
    if not 0 < len(version_policy) <= LONGEST_VERSION:
        rule = "--version-policy is any, latest or one version"
        raise CallerError(rule, value=repr(version_policy), hint="leave it out for any")
    return AuthContext(
        tenant=tenant,
        user=user,
        roles=frozenset(roles or []),
        allowed_sources=checked_sources(storables(sources)) or None,
        version_policy=storable(version_policy),
        operator=user == DEFAULT_USER and not roles,
    )


def settings_from(
    data: Path | None, changes: list[str] | None = None, stream: str | None = None
) -> Settings:
    """Return the settings that flags and environment give."""
    return load_settings({**flags_from(data, changes), "stream": stream})[0]


@contextmanager
def opened(
    settings: Settings,
    *,
    create: bool = False,
    needs_embedder: bool = False,
    alone: bool = False,
    check_later: bool = False,
    answers: bool = False,
    check: Callable[[Record], None] | None = None,
) -> Iterator[Session]:
    """Give a session whose SQLite errors name this data directory and what to do.

    Where a server owns the directory, the command leaves this process here, and the server runs it
    from its beginning: nothing may have been printed before. Not so with `alone`: such a command
    needs the directory for itself and is refused. In the server the session is its own, lent. With
    `check_later` the caller sees to `maintenance.finish_check`. With `answers` a run follows, whose
    modules are loaded meanwhile. `check` may refuse the command before a model is loaded.
    """
    if (here := host()) is not None:
        from cli.server.hosting import lent

        if alone:
            raise CallerError(
                "a command that needs the directory for itself is run without a server"
            )
        yield lent(here.session, settings, needs_embedder=needs_embedder)
        return
    with owned(settings, create=create, alone=alone) as lock:
        from app.session import Session, preload_graph

        if answers:
            preload_graph()
        if check is not None:
            with opened_record(settings) as record:
                check(record)
        with (
            Session(
                settings,
                create=create,
                needs_embedder=needs_embedder,
                lock=lock,
                check_later=check_later,
            ) as session,
            session.maintenance.explained(),
        ):
            yield session


@contextmanager
def opened_catalogue(settings: Settings) -> Iterator[Record]:
    """Give the catalogue alone, as `opened` gives a session; no model is loaded."""
    if (here := host()) is not None:
        yield here.session.store
        return
    with owned(settings):
        with opened_record(settings) as record:
            if record.lost:  # lists of what is kept look complete otherwise
                warn(record.warnings()[0])
            yield record


def damaged_catalogue(error: StorageError) -> CarrelError:
    """Return what a failure of its store means for the data directory."""
    return damaged(load_settings()[0].data / CATALOGUE, error)


@contextmanager
def owned(
    settings: Settings, *, create: bool = False, alone: bool = False, whole: bool = False
) -> Iterator[OwnerLock]:
    """Hold the data directory; where a server does, let that run the command, unless `alone`.

    With `whole` no other process uses it, though it be one that several share.
    """
    with private_files():
        try:
            lock = locked(settings, create=create, alone=whole)
        except OwnedError as error:
            owner, waited = error.owner, 0.0
            # A server that is starting takes commands when it listens.
            while owner and owner.is_starting and not alone and waited < STARTING_SECONDS:
                waited += POLL_SECONDS
                time.sleep(POLL_SECONDS)
                owner = read_owner(error.folder) or owner
            if owner is None or not owner.port or not owner.is_here:
                raise

            if alone:
                raise asked(error, owner) from None
            raise ServerOwns(error, owner) from None
        try:
            yield lock
        finally:
            lock.release()


@contextmanager
def working(session: Session, work: str, *, quiet: bool) -> Iterator[None]:
    """Hold the session's store for long work of this name, and say what is waited for."""
    said = quiet

    def waiting(other: str) -> None:
        nonlocal said
        check_interrupted()
        if not said:
            stderr().print(f"[dim]waiting for {escape(other)}…[/dim]")
        said = True

    with session.maintenance.turn(work, waiting):
        yield


def storable(text: str) -> str:
    """Return a text without the halves of characters that no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def storables(texts: list[str] | None) -> list[str]:
    """Return what was given for an option that may be repeated, each text storable."""
    return [storable(text) for text in texts or []]


def flags_from(data: Path | None, changes: list[str] | None) -> dict[str, Any]:
    """Return the settings given as flags."""
    flags: dict[str, Any] = {"data": data, "storage.insecure_permissions": insecure.get() or None}
    for change in changes or []:
        name, separator, value = change.partition("=")
        if not separator:
            raise CallerError(
                "--set takes name=value with a known setting",
                value=change,
                hint="`carrel config` lists the settings",
            )
        for known in known_values({name: value}, "--set takes name=value with a known setting"):
            flags[known] = named_path(value) if known in PATHS else value
    return flags
