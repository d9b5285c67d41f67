"""What a shell offers for values: names that are known, or that the data directory has."""

from __future__ import annotations

from cli.arguments import DEFAULT_TENANT, DEFAULT_USER
from cli.options import caller
from core.auth import AuthContext
from core.profile import BUILT_IN
from core.settings import load_settings
from stores.sqlite.implementation import opened_catalogue

RUNS = 20  # the newest that are offered; chosen


def collections() -> list[str]:
    """Return the collections of the user at this machine."""
    with opened_catalogue(load_settings()[0].data) as kept:
        return [one.name for one in kept.catalogue.visible_collections(_user())]


def runs() -> list[str]:
    """Return the newest runs of the user at this machine."""
    with opened_catalogue(load_settings()[0].data) as kept:
        return ["last", *(one.run_id for one in kept.runs.newest(_user(), RUNS))]


def profiles() -> list[str]:
    """Return the built-in profiles."""
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def _user() -> AuthContext:
    return caller(DEFAULT_TENANT, DEFAULT_USER, None)
