"""Where settings come from: environment variables, YAML files, and the modes of Carrel."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import platformdirs

from core.errors import CallerError

PREFIX = "CARREL_"

_given: ContextVar[Mapping[str, str] | None] = ContextVar("environment", default=None)


def variables() -> Mapping[str, str]:
    """Return the variables that hold here."""
    given = _given.get()
    return os.environ if given is None else given


def default_data() -> Path:
    """Return the data directory where no setting names one."""
    return platformdirs.user_data_path("carrel")


def default_cache() -> Path:
    """Return the folder of the cache where no setting names one."""
    return platformdirs.user_cache_path("carrel")


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


VARIABLE = "CARREL_SETTINGS"
MODES = Path(__file__).resolve().parent.parent / "profiles" / "modes"
MOST_FILE_BYTES = 1_000_000  # far above every setting given; chosen, not measured


def file_values(path: str | None = None) -> tuple[dict[str, Any], str]:
    """Return the settings of a file, without a path that which `CARREL_SETTINGS` names, and it.

    A file is a mapping of names to values or to groups; raises CallerError when it is none.
    """
    named = path or variables().get(VARIABLE, "")
    if not named:
        return {}, ""
    file = Path(named).expanduser()
    return read_values(file), f"settings file {file.name}"


def mode_values(mode: str) -> dict[str, Any]:
    """Return what a mode sets; `default` sets nothing."""
    return read_values(MODES / f"{mode}.yaml") if mode in built_in_modes() else {}


def built_in_modes() -> list[str]:
    """Return the names of the modes that set something."""
    return sorted(path.stem for path in MODES.glob("*.yaml"))


SETTINGS_FILE = "a settings file"


def read_values(path: Path, what: str = SETTINGS_FILE) -> dict[str, Any]:
    """Return the values of one file, which messages call `what`; raises CallerError."""
    import yaml  # late: a second server is refused without it

    hint = "correct the file"
    hint += "; `carrel config` lists the settings" if what == SETTINGS_FILE else ""
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            raise CallerError(f"{what} has at most {MOST_FILE_BYTES} bytes", value=str(path))
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = f"{path} ({error.strerror})"
        rule = f"{what.replace('a ', 'the ', 1)} must be readable"
        raise CallerError(rule, value=reason, hint=hint) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        rule = f"{what} is YAML, and {path.name} is not valid YAML"
        raise CallerError(rule, value=str(error), hint=hint) from None
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        rule = f"{what} is YAML, one setting a line as `name: value`: {path.name} is not"
        raise CallerError(rule, hint=hint)
    return found
