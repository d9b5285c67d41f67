"""Carrel as a library: documents go in, cited answers, searches, a retriever and tools come out.

    with carrel.Library("data") as library:
        library.ingest("papers/")
        print(library.ask("Who measured the boiling point?").answer.text)

What is named in `__all__` is what others may build on; everything else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carrel.rooms import check_rooms, explained

if TYPE_CHECKING:
    from carrel.library import Library
    from core.auth import AuthContext
    from core.errors import CarrelError
    from core.trace import RunRecord
    from core.types import Answer, Citation, Claim, Evidence

__all__ = [
    "Answer",
    "AuthContext",
    "CarrelError",
    "Citation",
    "Claim",
    "Evidence",
    "Library",
    "RunRecord",
]

_MODULES = {
    **dict.fromkeys(("Answer", "Citation", "Claim", "Evidence"), "core.types"),
    "AuthContext": "core.auth",
    "CarrelError": "core.errors",
    "Library": "carrel.library",
    "RunRecord": "core.trace",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of a module
    """Load a name when it is asked for: the command line needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module 'carrel' has no attribute '{name}'")
    check_rooms()
    try:
        import_module("stores.encryption").use_cipher()
        return getattr(import_module(_MODULES[name]), name)
    except ImportError as error:
        if (why := explained(error)) == str(error):
            raise
        raise ImportError(why, name=error.name) from error


def __dir__() -> list[str]:
    return __all__
