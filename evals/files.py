"""Write the reports of an evaluation, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from core.errors import CallerError


def checked_out(path: Path, suffixes: Collection[str]) -> Path:
    """Raise CallerError unless a file of this name can be written; hours of work may hang on it."""
    wanted = " or ".join(suffixes)
    if path.suffix.lower() not in suffixes:
        raise CallerError(
            f"--out must end in {wanted}", value=str(path), hint="the suffix chooses the format"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise CallerError(
            "--out must name a file in a folder that exists",
            value=str(path),
            hint="make the folder first, or name another file",
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CallerError(
            "--out must be writable", value=str(path), hint="correct the permissions of its folder"
        )
    return path


def write_files(files: Mapping[Path, str]) -> None:
    """Write the files, each under another name first, so that none is ever half there."""
    for path, text in files.items():
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_bytes(text.encode("utf-8", "replace"))
            os.replace(part, path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise CallerError(
                "the file must be writable",
                value=f"{path} ({error.strerror or error})",
                hint="free some space or name another file",
            ) from None
