"""`carrel backup`: one file with all that cannot be rebuilt, without a pause."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import Data, Json, named_path
from cli.options import opened, settings_from
from cli.terminal.output import print_json, stdout
from cli.terminal.progress import ByteBars
from stores.backup.format import BackupManifest, read_key

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        help="Encrypt it with the key in this file; any change is detected.",
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
    settings = settings_from(data)
    target = file.expanduser().absolute()
    key = read_key(key_file.expanduser().absolute()) if key_file else None
    with opened(settings) as session, ByteBars(as_json) as progress:
        manifest = session.maintenance.back_up(
            target,
            progress,
            key=key,
            force=force,
            min_free_mb=settings.storage.min_free_mb,
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


def describe(manifest: BackupManifest) -> dict[str, object]:
    """Return a manifest as --json shows it."""
    return manifest.model_dump()
