"""Read the text files of a data set line by line; every fault names its file and line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from core.errors import CallerError


def find_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that the folder has; a missing one is a CallerError."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CallerError(
        f"a data set needs {' or '.join(names)}",
        value=str(folder),
        hint="docs/evaluation.md describes the three files of a data set",
    )


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of all lines with text; a file ending in .gz is unpacked."""
    number = 0
    try:
        with cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as handle:
            # Bytes, since a JSON string may hold characters at which a text file would split.
            for number, raw in enumerate(handle, start=1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if line:
                    yield number, line
    except UnicodeDecodeError:
        raise CallerError(
            f"{path.name}:{number}: the line is not UTF-8", hint="save the file as UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CallerError(
            "the gzip file must be whole",
            value=f"{path} ({error})",
            hint="copy or download it again",
        ) from None
    except OSError as error:
        raise CallerError(
            "the file must be readable",
            value=f"{path} ({error.strerror or error})",
            hint="correct its permissions",
        ) from None


def read_objects(path: Path, shape: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file:line", object) of JSON Lines; `shape` shows a right line in error messages."""
    for number, line in read_lines(path):
        place = f"{path.name}:{number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
            raise CallerError(
                f"{place}: not valid JSON ({why})", value=line, hint=f"a line is {shape}"
            ) from None
        if not isinstance(found, dict):
            raise CallerError(
                f"{place}: each line must be one JSON object", value=line, hint=f"a line is {shape}"
            )
        yield place, found


def object_id(place: str, found: dict[str, Any], shape: str) -> str:
    """Return the `_id` of an object as text; it must be a text with letters or a whole number."""
    value = found.get("_id")
    if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
        name = str(value)
        if name == name.encode("utf-8", "replace").decode("utf-8"):
            return name
    raise CallerError(f"{place}: the line needs an '_id'", value=value, hint=f"a line is {shape}")
