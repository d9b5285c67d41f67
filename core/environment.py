"""The environment variables that settings are read from: this process's, or a command's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import platformdirs

PREFIX = "CARREL_"

_given: ContextVar[Mapping[str, str] | None] = ContextVar("environment", default=None)


def variables() -> Mapping[str, str]:
    """Return the variables that hold here."""
    given = _given.get()
    return os.environ if given is None else given


def default_data() -> Path:
    """Return the data directory where no setting names one."""
    return Path(platformdirs.user_data_dir("carrel"))


def default_cache() -> Path:
    """Return the folder of the cache where no setting names one."""
    return Path(platformdirs.user_cache_dir("carrel"))


@contextmanager
def using(given: Mapping[str, str]) -> Iterator[None]:
    """Let these variables hold in the block, for this thread alone."""
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)


def is_of_a_command() -> bool:
    """Tell whether variables of a command hold here that another process was given."""
    return _given.get() is not None
