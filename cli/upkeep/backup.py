"""`carrel backup`, one file with what cannot be rebuilt; `carrel restore`, a directory from it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Data, Json, Set, path_argument, path_option
from cli.options import opened, owned, settings_from
from cli.terminal.output import print_json, stdout, warn
from cli.terminal.progress import ByteBars, StageBars
from cli.upkeep.migrate import move_all
from core.errors import OperatorError
from core.settings import Settings
from graph.threads import copy_states
from ingest.vectors import rebuild
from stores.backup.archive import unpack
from stores.backup.format import read_key
from stores.folder import MOVED, SQLITE, sync_folder
from stores.lock import OwnerLock
from stores.sqlite.implementation import of_server, opened_record

KeyFile = Annotated[
    Path | None,
    path_option("--key-file", "Encrypt it with the key in this file; any change is detected."),
]


def backup(
    file: Annotated[Path, path_argument("file", "File to write.")],
    key_file: KeyFile = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Back up documents, vectors, runs, conversations and keys into one file, also while in use."""
    settings = settings_from(data)
    target = file.expanduser().absolute()
    key = read_key(key_file.expanduser().absolute()) if key_file else None
    with opened(settings) as session, ByteBars(as_json) as progress:
        store = session.store
        manifest = session.maintenance.back_up(
            target,
            progress,
            key=key,
            force=force,
            min_free_mb=settings.storage.min_free_mb,
            copy_states=lambda folder, named: copy_states(
                (store.folder, store.address), (folder, SQLITE), named
            ),
        )
        size = target.stat().st_size
    report = manifest.model_dump() | {"file": str(target), "bytes": size, "sealed": key is not None}
    if as_json:
        print_json(report)
        return
    sealed = "sealed" if key else "not sealed: keep it as safe as the data"
    stdout().print(
        escape(
            f"{target}: {manifest.documents} documents, {manifest.chunks} chunks,"
            f" {size / 1e6:.1f} MB, {sealed}"
        )
    )


UNFINISHED = ".restoring"


def restore(
    file: Annotated[Path, path_argument("file", "The backup.")],
    key_file: KeyFile = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Check a backup, make an empty data directory from it and rebuild its indexes."""
    settings = settings_from(data, changes)
    target = settings.data.expanduser().absolute()
    began = time.monotonic()
    key = read_key(key_file.expanduser()) if key_file else None
    _check_empty(target)
    if settings.catalogue != SQLITE:
        of_server("database").check_server(settings.catalogue)
    with StageBars(as_json) as progress, _unfinished(target, settings) as folder:
        progress("unpack", 0, 0)
        manifest = unpack(file.expanduser(), folder, key=key, max_gb=settings.storage.backup_max_gb)
        there = settings.model_copy(update={"data": folder, "catalogue": SQLITE})
        made = _completed(there, progress)
        if settings.catalogue != SQLITE:
            with owned(there, alone=True, whole=True):
                move_all(there, settings.catalogue, progress)
            for left in folder.glob(f"*{MOVED}*"):
                left.unlink()
    report: dict[str, Any] = manifest.model_dump() | made
    report |= {"data": str(target), "seconds": round(time.monotonic() - began, 1)}
    if as_json:
        print_json(report)
        return
    stdout().print(
        escape(
            f"{target}: {manifest.documents} documents, {manifest.chunks} chunks as of"
            f" {manifest.made_at}, in {report['seconds']} s"
        )
    )
    if key is None:
        warn("the backup was not sealed: its parts are whole, but who made it is not proven")
    if made["embedded"]:
        warn(f"{made['embedded']} texts had no vector of this embedder and were embedded anew")


def _completed(settings: Settings, progress: Callable[[str, int, int], None]) -> dict[str, Any]:
    """Make the indexes again, and check all of it."""
    with opened_record(settings) as record:
        record.intake.rebuild_words(progress)
    with opened(settings, needs_embedder=True) as session:
        assert session.embedder is not None  # needs_embedder says so
        made = rebuild(
            session.store, session.embedder, settings, progress, session.second, words=False
        )
        session.maintenance.tidy()
        session.maintenance.clear_repairs()
        report = session.maintenance.examine()
    if report["problems"]:
        raise OperatorError(
            "what was restored is not whole",
            value="; ".join(report["problems"][:3]),
            hint="nothing was put in place; take another backup",
        )
    return {"vectors": made["vectors"], "embedded": made["embedded"], "checked": True}


def _check_empty(target: Path) -> None:
    try:
        if target.is_symlink() or (
            target.exists() and (not target.is_dir() or any(target.iterdir()))
        ):
            raise OperatorError(
                "a backup is restored into an empty directory",
                value=str(target),
                hint="give another one with --data, or move this one away",
            )
    except OSError as error:
        raise OperatorError(
            "the data directory must be readable", value=f"{target} ({error.strerror})"
        ) from None


@contextmanager
def _unfinished(target: Path, settings: Settings) -> Iterator[Path]:
    """Give a folder beside the target that takes its place when the block ends well.

    What an ended restore has left there is removed; one that still runs holds its lock.
    """
    folder = target.with_name(target.name + UNFINISHED)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with OwnerLock(folder, wait_s=settings.storage.lock_wait_s):
            _clear(folder)
        yield folder
        for name in ("owner.lock", "owner.json"):
            (folder / name).unlink(missing_ok=True)
        if target.exists():
            target.rmdir()
        os.replace(folder, target)
        sync_folder(target.parent)
    except OSError as error:
        raise OperatorError(
            "the data directory must be writable",
            value=f"{error.filename or target} ({error.strerror})",
            hint="correct its permissions, or give another directory with --data",
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name in ("owner.lock", "owner.json"):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
