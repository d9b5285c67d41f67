"""The packages that Carrel is made of lie at the top level, where others' may hide them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOMS = (
    *("app", "cli", "core", "display", "evals", "graph", "ingest", "languages", "models", "nodes"),
    *("reasoning", "retrievers", "serve", "stores", "tools"),
)


def explained(error: ImportError) -> str:
    """Say why a package of ours cannot be imported, in one line."""
    try:
        from core.distribution import explain_import
    except ImportError:  # which may be what is missing
        return str(error)
    return explain_import(error) or str(error)


def check_rooms() -> None:
    """Raise ImportError, in one line, when a package of another owner stands for one of ours."""
    home = Path(__file__).resolve().parents[1]
    for room in ROOMS:
        spec = find_spec(room)
        places = list(spec.submodule_search_locations or [spec.origin or ""]) if spec else []
        if not any(Path(place).resolve().parent == home for place in places):
            found = f"hidden by {places[0]}" if places else "missing"
            raise ImportError(
                f"Carrel's package '{room}' is {found}: start Python from another folder, take that"
                " path out of PYTHONPATH, or install Carrel into an environment of its own."
            )
