"""Keys of callers: their times, and changes beside an owner; the rest is in tests/contracts."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from fakes import Clock
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DataLockedError
from stores.accounts.keys import Keys
from stores.folder import CATALOGUE
from stores.lock import OwnerLock
from stores.sqlite.implementation import opened_catalogue
from stores.store import Store, parts

START = datetime.datetime(2030, 5, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def keys(store: Store, clock: Clock) -> Keys:
    return Keys(parts(store).database, clock)


def test_a_key_expires(keys: Keys, clock: Clock) -> None:
    text, key = keys.create("acme", days=2)
    assert key.expires_at == "2030-05-03T12:00:00.000+00:00"
    clock.now = START + datetime.timedelta(days=2, milliseconds=-1)
    assert keys.verified(text) is not None
    clock.now = START + datetime.timedelta(days=2)
    assert keys.verified(text) is None
    revoked = keys.revoke(key.id)
    clock.now += datetime.timedelta(days=1)
    assert keys.revoke(key.id) == revoked


@given(st.text())
def test_no_text_is_a_key_by_chance(text: str) -> None:
    assert _EMPTY.verified(text) is None


class _NoRows:
    """Answer every query with nothing."""

    def read(self) -> _NoRows:
        return self

    def execute(self, query: str, values: object) -> _NoRows:
        return self

    def fetchone(self) -> None:
        return None


_EMPTY = Keys(_NoRows())  # type: ignore[arg-type]


def test_keys_change_while_another_owns_the_directory(store: Store, keys: Keys) -> None:
    with opened_catalogue(store.folder) as beside:
        text, key = beside.accounts.keys.create("acme")
    assert keys.verified(text) is not None
    with opened_catalogue(store.folder) as beside:
        beside.accounts.keys.revoke(key.id)
    assert keys.verified(text) is None


def test_nothing_is_written_beside_an_owner_that_has_not_made_its_catalogue(tmp_path: Path) -> None:
    (tmp_path / CATALOGUE).touch()
    with (
        OwnerLock(tmp_path, wait_s=0),
        pytest.raises(DataLockedError),
        opened_catalogue(tmp_path, create=True),
    ):
        pass
    assert (tmp_path / CATALOGUE).stat().st_size == 0


def test_keys_can_come_before_documents(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with opened_catalogue(folder, create=True) as record:
        record.accounts.keys.create("acme")
    assert (folder / CATALOGUE).is_file()
