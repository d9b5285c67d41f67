"""`carrel backup`: one file with all that cannot be made anew, while everything goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.options import Data, Json, named_path, opened, settings_from
from cli.output import print_json, stdout
from cli.progress import ByteBars

if TYPE_CHECKING:
    from stores.backup.manifest import Manifest

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help="Seal it with this key: unreadable without, and every change is found.",
        show_default=False,
        parser=named_path,
        metavar="<path>",
    ),
]


def backup(
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write.", show_default=False, parser=named_path, metavar="file"
        ),
    ],
    key_file: KeyFile = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Back up documents, vectors, runs, conversations and keys into one file, also while in use."""
    from stores.backup.pack import make_backup
    from stores.backup.sealing import read_key

    settings = settings_from(data)
    target = file.expanduser().absolute()
    key = read_key(key_file.expanduser().absolute()) if key_file else None
    with opened(settings) as session, ByteBars(as_json) as progress:
        manifest = make_backup(
            session.store.database,
            target,
            progress,
            key=key,
            force=force,
            min_free_mb=settings.min_free_mb,
        )
        size = target.stat().st_size
    report = describe(manifest) | {"file": str(target), "bytes": size, "sealed": key is not None}
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


def describe(manifest: Manifest) -> dict[str, object]:
    """Return a manifest as --json shows it."""
    return manifest.model_dump(exclude={"migrations"})
