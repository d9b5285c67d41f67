"""A check that begins after the opening: what it may still find is never answered in silence."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import change
from fakes import FakeEmbedder
from harbour import ANN, LOW, found

from core.errors import OperatorError
from core.settings import Settings
from stores.integrity.checkup import MENDED, UNDER_WAY
from stores.sqlite.database import WriteBarrier
from stores.sqlite.fulltext import table
from stores.store import Store, parts

Opener = Callable[..., Store]


@pytest.fixture
def folder(harbour: Path) -> Path:
    """Return the directory as a crash leaves it."""
    (harbour / "seal.json").unlink()
    return harbour


@pytest.fixture
def later(folder: Path, embedder: FakeEmbedder) -> Iterator[Callable[[], Store]]:
    opened: list[Store] = []

    def open_it() -> Store:
        settings = Settings(data=folder, **LOW)
        opened.append(Store(settings, embedder.model_id, check_later=True))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


def test_answers_say_that_the_check_is_under_way_until_it_ends(
    later: Callable[[], Store], open_store: Opener
) -> None:
    store = later()
    assert store.maintenance.checking
    assert found(store)
    assert store.warnings() == [UNDER_WAY]
    before = store.catalogue.index_version()
    assert store.maintenance.check_again() == []
    assert not store.maintenance.checking
    assert store.warnings() == store.maintenance.repaired == []
    assert store.catalogue.index_version() > before  # what was remembered said "under way"
    store.close()
    assert parts(open_store(**LOW)).sealed.state == "equal"


def test_what_was_not_checked_to_the_end_is_checked_at_the_next_opening(
    later: Callable[[], Store], open_store: Opener
) -> None:
    later().close()
    again = later()
    assert parts(again).sealed.state != "equal"
    assert again.maintenance.checking


def test_an_index_that_the_first_look_missed_is_told_after_it_was_made_anew(
    folder: Path, later: Callable[[], Store]
) -> None:
    columns = "rowid, title, keywords, section, body"  # no sample asks for what is not there
    change(folder, f"INSERT INTO {table(1)} ({columns}) VALUES (9999, '', '', '', 'ghost')")
    store = later()
    assert store.warnings() == [UNDER_WAY]
    store.maintenance.finish_check()
    assert store.warnings() == [MENDED]
    assert any("full text" in line for line in store.maintenance.repaired)
    store.maintenance.check_again()
    assert store.warnings() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET is_open = 0 WHERE id = 3",
        "UPDATE document_acl SET principal = 'role:all'",
        "UPDATE collections SET profile = '{}'",
    ],
)
def test_what_decides_rights_is_looked_at_first(
    folder: Path, later: Callable[[], Store], statement: str
) -> None:
    change(folder, "INSERT INTO document_acl VALUES (4, 'role:staff')", statement)
    store = later()
    assert not store.maintenance.checking
    warnings = store.warnings()
    assert warnings and UNDER_WAY not in warnings


def test_a_damaged_chunk_is_withheld_before_the_check_has_come_to_it(
    folder: Path, later: Callable[[], Store]
) -> None:
    change(folder, "UPDATE chunks SET text = 'harbour tide7 crame1' WHERE id = 8")
    store = later()
    ids = store.search.candidates(ANN, 1, terms=[{"tide7"}], vector=None, pool=5).chunk_ids
    assert ids
    assert not store.catalogue.evidence(ANN, 1, ids)
    store.maintenance.finish_check()
    assert any("1 passages are damaged" in line for line in store.warnings())


def test_nothing_is_written_to_a_catalogue_whose_structure_is_not_known_to_be_sound(
    folder: Path, later: Callable[[], Store]
) -> None:
    columns = "document, collection_id, name, value, folded"  # foreign keys are off here
    change(folder, f"INSERT INTO record_fields ({columns}) VALUES (4242, 1, 'a', 'b', 'b')")
    store = later()
    assert store.maintenance.checking
    with pytest.raises(OperatorError, match="damaged"), parts(store).database.write():
        pass
    store.maintenance.finish_check()
    assert found(store)
    assert any("catalogue is damaged" in line for line in store.warnings())


def test_a_writer_waits_for_the_one_who_proves() -> None:
    barrier, proving, release, order = WriteBarrier(), threading.Event(), threading.Event(), []

    def prove() -> None:
        barrier.wait()  # its own writes pass
        proving.set()
        release.wait()
        order.append("proved")

    def second() -> None:
        barrier.wait()
        order.append("second")

    barrier.close(prove)
    one = threading.Thread(target=barrier.wait)
    one.start()
    proving.wait()
    two = threading.Thread(target=second)
    two.start()
    release.set()
    one.join()
    two.join()
    assert order == ["proved", "second"]
    barrier.wait()


def test_the_doctor_waits_for_the_check(later: Callable[[], Store]) -> None:
    store = later()
    assert store.maintenance.examine()["problems"] == []
    assert not store.maintenance.checking
