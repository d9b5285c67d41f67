"""What tests of chat models share: an open ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from core.budget import Ledger, opened_ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with opened_ledger(Ledger(time.monotonic() + 60, 100_000, owner="ann")) as opened:
        yield opened
