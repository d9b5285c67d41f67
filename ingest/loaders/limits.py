"""How much one file may cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from core.errors import DocumentError, shorten
from core.fields.ingest import IngestSettings
from core.types import FrozenModel
from ingest.loaders.tesseract import engines_for

if TYPE_CHECKING:
    from core.settings import Settings


MB = 2**20  # bytes


def _default(name: str, *, least: float | None = None) -> Any:  # noqa: ANN401 (a setting's type)
    bound = {"gt": 0} if least is None else {"ge": least}
    return Field(IngestSettings.model_fields[name].default, **bound)


class LoadLimits(FrozenModel):
    """Bound what loading one file may take.

    `max_characters` counts the text of one document or record, `max_field_values` its values;
    `max_fields` are those of all records of a file, `max_table_rows` the rows of the tables of a
    document that become records; `timeout_s` and `memory_mb` hold for
    the process that parses the file; the `zip_` limits for a whole container, with what is in it.
    `ocr` names the engines that read pictures, "" for none.
    """

    max_file_mb: float = Field(gt=0)
    max_pages: int = Field(gt=0)
    max_characters: int = Field(gt=0)
    timeout_s: float = Field(gt=0)
    memory_mb: int = Field(gt=0)
    max_records_mb: float = _default("max_records_mb")
    max_fields: int = _default("max_fields")
    max_field_values: int = _default("max_field_values")
    max_table_rows: int = Field(2000, ge=0)  # each is embedded: 16 ms on two cores
    ocr: str = ""
    ocr_pages: int = _default("ocr_pages")
    ocr_megapixels: float = _default("ocr_megapixels")
    ocr_timeout_s: float = _default("ocr_timeout_s")
    ocr_confidence: float = Field(0.8, ge=0, le=1)  # least of a line; chosen, not measured
    zip_entries: int = _default("zip_entries")
    zip_total_mb: float = _default("zip_total_mb")
    zip_ratio: float = _default("zip_ratio")
    zip_depth: int = _default("zip_depth", least=0)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the limits that the settings give."""
        given = settings.ingest
        same = {name: getattr(given, name) for name in cls.model_fields if hasattr(given, name)}
        same |= {"timeout_s": given.parse_timeout_s, "memory_mb": given.parse_memory_mb}
        return cls(**same | {"ocr": engines_for(given.ocr)})


# Their texts speak of the parser's code, not of the file.
_INTERNAL = (
    AttributeError, TypeError, IndexError, AssertionError, NameError, NotImplementedError,
    RecursionError, StopIteration,
)  # fmt: skip
_PATH = re.compile(r"(?:/[^\s'\":,()]+)+/[^\s'\":,()]*")
_CLASS = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b:?\s*")
_MOST = 120  # characters of a parser's own message; chosen, not measured


def because(error: BaseException) -> str:
    """Return " (what the error says)" where that can help a person, else "".

    Paths, which are those of temporary files, and names of classes are left out.
    """
    if isinstance(error, _INTERNAL):
        return ""
    message = _CLASS.sub("", _PATH.sub("the file", str(error)))
    message = shorten(message, _MOST).strip(" .")
    return f" ({message})" if any(c.isalpha() for c in message) else ""


def check_pages(count: int, kind: str, pages: str, limits: LoadLimits) -> None:
    """Raise DocumentError for a file of this kind with too many pages, or slides."""
    if count > limits.max_pages:
        raise DocumentError(
            f"the {kind} has {count} {pages}; the limit is {limits.max_pages} (ingest.max_pages);"
            " split it or raise it"
        )


@contextmanager
def report_damage(rule: str) -> Iterator[None]:
    """Turn any exception that a library raises over a damaged file into a DocumentError."""
    try:
        yield
    except (DocumentError, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(f"{rule}{because(error)}") from error


def unreadable(error: OSError) -> str:
    """Say that the system does not let a file or folder be read."""
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
