"""The secret that makes ids of documents and chunks unpredictable outside the data directory.

Without it, ids would tell who compares them which names are taken by what they may not see.
"""

from __future__ import annotations

from secrets import token_hex

ID_SECRET = "id_secret"  # in `meta`; goes into every key of a document and every id of a chunk
SECRET_BYTES = 16
SECRET = f"(SELECT value FROM meta WHERE key = '{ID_SECRET}')"  # SQL


def new_secret() -> str:
    """Return a random secret, in hexadecimal."""
    return token_hex(SECRET_BYTES)
