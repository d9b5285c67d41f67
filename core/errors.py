"""One error tree, split by who must act.

    CarrelError
    ├── CallerError       the person asking: wrong arguments, unknown names      exit 2
    │   ├── PolicyError   the caller may not do this                             exit 2
    │   ├── AbsentError   it is not there, or not the caller's                   exit 2
    │   └── InUseError    another request is at work on it                       exit 2
    ├── OperatorError     whoever runs the machine: data, disk, locks            exit 4
    │   ├── DataLockedError  another process owns the data directory             exit 4
    │   └── DiskFullError    there is no room for what is written                exit 4
    ├── ModelError        a model is missing, broken or too slow                 exit 1
    └── DocumentError     one document cannot be read; the others go on          exit 1

A message says the rule, the actual value and what to do next. What a store fails with is apart from
them until it is known which directory it is about.
"""

from __future__ import annotations

import errno

# EFBIG is `ulimit -f`, EDQUOT a quota: room for this user has run out, whatever the disk has.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class CarrelError(Exception):
    """Carry one line for a person; `retryable` says whether trying again can help."""

    exit_code = 1
    retryable = False

    def __init__(self, rule: str, *, value: object = None, hint: str = "") -> None:
        """Join the rule, the actual value and the next step into one line."""
        self.rule = rule
        self.value = value
        self.hint = hint
        parts = [rule.rstrip(".")]
        if value is not None:
            parts[0] += f": {shorten(value) or repr(value)}"
        if hint:
            parts.append(hint[0].upper() + hint[1:].rstrip("."))
        super().__init__(". ".join(parts) + ".")


class CallerError(CarrelError):
    """Ask the caller to correct the request."""

    exit_code = 2


class PolicyError(CallerError):
    """Deny what the verified caller may not do."""


class AbsentError(CallerError):
    """Say that something is not there, or not the caller's: the two look the same."""


class InUseError(CallerError):
    """Turn a request away while another is at work on the same thing."""

    retryable = True


class OperatorError(CarrelError):
    """Ask whoever runs the machine to act: data directory, disk, configuration."""

    exit_code = 4


class DataLockedError(OperatorError):
    """Name the process that owns the data directory."""

    retryable = True


class DiskFullError(OperatorError):
    """Say that there is no room for what is written."""

    retryable = True

    def __init__(self, *, value: object = None) -> None:
        """Name what could not be written."""
        super().__init__("the disk is full", value=value, hint="free some space and run it again")


class StorageError(Exception):
    """Say that a store failed, in words of what keeps it; `damaged` makes a CarrelError of it."""


class StorageUnavailableError(StorageError):
    """Say that a store cannot be used now: it is full, locked, or cannot be read."""


def disk_error(error: OSError) -> OperatorError | None:
    """Return what the operator must know when a disk is full or fails, None for another error."""
    value = f"{error.filename or 'a file'} ({error.strerror})"
    if error.errno in NO_ROOM:
        return DiskFullError(value=value)
    if error.errno == errno.EIO:
        return OperatorError("the disk fails", value=value, hint="check it, then run it again")
    return None


class ModelError(CarrelError):
    """Report a model that is missing, broken or too slow."""


class DocumentError(CarrelError):
    """Report one document that cannot be read; the others go on."""


def shorten(value: object, limit: int = 120) -> str:
    """Show a value in an error message on one line, cut to `limit` characters."""
    shown = " ".join((value if isinstance(value, str) else repr(value)).split())
    shown = "".join(c if c.isprintable() else "?" for c in shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
