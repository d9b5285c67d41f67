"""Encryption of the databases at rest, where the environment gives a key.

SQLCipher takes the place of Python's `sqlite3` before anything imports that, so that every
connection of the process has it; who gives no key runs as without. Only the environment has the
key: a file beside the data would lie where the data lies.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from importlib import import_module

from core.errors import OperatorError

VARIABLE = "CARREL_ENCRYPTION_KEY"
LEAST = 16  # characters of a key; a shorter one is guessed
# The cost of guessing (RFC 7914): .05 s once in a process.
_COST = {"n": 2**14, "r": 8, "p": 1, "maxmem": 2**26}


def use_cipher() -> None:
    """Let SQLCipher stand for `sqlite3` where a key is given; raises OperatorError without it."""
    key = os.environ.get(VARIABLE, "")
    if not key:
        return
    if len(key) < LEAST:
        raise OperatorError(
            f"a key has at least {LEAST} characters",
            value=f"{VARIABLE} has {len(key)}",
            hint="make one by `openssl rand -hex 32`, and keep it: without it nothing is read",
        )
    try:
        dbapi2 = import_module("sqlcipher3.dbapi2")
    except ImportError:
        raise OperatorError(
            f"{VARIABLE} needs SQLCipher",
            value="the package sqlcipher3-binary is absent",
            hint="pip install 'carrel-rag[encryption]'",
        ) from None
    sys.modules["sqlite3"] = sys.modules["sqlite3.dbapi2"] = dbapi2


@lru_cache(maxsize=1)
def key_statements() -> tuple[str, ...]:
    """Return what opens a database of this process, nothing where none is encrypted."""
    key = os.environ.get(VARIABLE, "")
    if not key:
        return ()
    raw = hashlib.scrypt(key.encode(), salt=b"carrel databases", dklen=32, **_COST)
    # What goes wrong is raised, and need not be printed as well.
    return "PRAGMA cipher_log_level = NONE", f"PRAGMA key = \"x'{raw.hex()}'\""
