"""What the suites of the stores' ports run over: one line for each implementation.

`store` is an open data directory of each of them in turn, and so are `collection` and `index`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from postgres_server import new_catalogue

from stores.store import Store

# The settings that choose each.
RECORDS: dict[str, Callable[[], dict[str, object]]] = {
    "sqlite": dict,
    "postgres": lambda: {"catalogue": new_catalogue()},
}


@pytest.fixture(params=RECORDS)
def store(request: pytest.FixtureRequest, open_store: Callable[..., Store]) -> Store:
    return open_store(**RECORDS[request.param]())
