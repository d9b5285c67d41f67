"""What the suites of the stores' ports run over: one line for each implementation.

`store` is an open data directory of each of them in turn, and so are `collection` and `index`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from postgres_server import RECORDS

from stores.store import Store


@pytest.fixture(params=RECORDS)
def open_again(
    request: pytest.FixtureRequest, open_store: Callable[..., Store]
) -> Callable[..., Store]:
    """Open the data directory, again and again, with its catalogue where it is."""
    kept = RECORDS[request.param]()
    return lambda **values: open_store(**kept, **values)


@pytest.fixture
def store(open_again: Callable[..., Store]) -> Store:
    return open_again()
