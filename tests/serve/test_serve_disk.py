"""A full disk under a running server: sentences, not 500, and all goes on when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from serving import Served, error_of, eventually
from uploading import finished, upload, uploaded

from core.errors import StorageUnavailableError


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as `ulimit -f` and a quota do."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_upload_without_room_is_507_and_the_next_one_goes_in(served: Served) -> None:
    with largest_file(4096):
        response = upload(served, "large.txt", b"A long hall of lamps. " * 50_000)
    assert response.status_code == 507
    error = error_of(response)
    assert (error["code"], error["rule"]) == ("disk_full", "the disk is full")
    assert error["value"] is None  # no path reaches a caller
    uploaded(served, "small.txt", "A hall of lamps.")


def test_the_end_of_a_job_that_could_not_be_kept_is_told_and_kept_later(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = served.services.jobs._rows
    save, full = rows.save, True

    def without_room(row: object) -> None:
        if full and row.ended:  # type: ignore[attr-defined]
            raise StorageUnavailableError("database or disk is full")
        save(row)  # type: ignore[arg-type]

    monkeypatch.setattr(rows, "save", without_room)
    job = upload(served, "first.txt", b"A first hall of lamps.").json()
    assert finished(served, job)["state"] == "done"
    assert rows.find(job["id"]).state == "running"  # type: ignore[union-attr]
    full = False
    uploaded(served, "second.txt", "A second hall of lamps.")
    eventually(lambda: rows.find(job["id"]).state == "done")  # type: ignore[union-attr]
