"""Any document loader of LangChain, by its dotted name, in a process of its own.

It may reach public addresses and read the paths that its parameters name; it may not start a
program, nor write but to a folder that goes with it. It is read to its end before any document is
taken, so that the time it has is its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.errors import CallerError, DocumentError
from ingest.connectors.address import Address, filled
from ingest.connectors.types import Access, Item, Received, SourceError
from ingest.sandbox.pool import ChildEndedError, ParserProcess
from ingest.types import LoadFailure

WORKER = "ingest.sandbox.loader_worker"
VALUES, LONGEST_VALUE = 20, 300  # of the metadata that are kept; chosen, not measured
NAME_SIGNS = 60  # of a source in the name of its file
WAIT_S = 1.0  # after which it is seen whether the sync is to end; chosen, not measured
NOTHING = "nothing of this run is taken; correct its parameters, or raise the limit"


class LoaderConnector:
    """Run a loader; a revision is the hash of a document, as loaders tell of none."""

    def __init__(self, address: Address, access: Access, parameters: Mapping[str, Any]) -> None:
        self._dotted, self._access = address.rest, access
        self._parameters = filled(parameters)
        self._secrets = [
            str(value) for name, value in self._parameters.items() if parameters[name] != value
        ]
        self._texts: dict[str, str] = {}
        self._process: ParserProcess | None = None
        self.complete = True
        self.bytes_read = 0
        self.failed: list[LoadFailure] = []

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the documents as the loader gives them."""
        place = self._access.scratch / "loader.jsonl"
        problem = self._read_all(place)
        counts: dict[str, int] = {}
        with place.open("rb") as lines:
            for line in lines:
                try:
                    found = json.loads(line)
                    if "refused" in found:
                        why = LoadFailure(path=found["refused"], reason=found["reason"])
                        self.failed.append(why)
                        continue
                    source = str(found["metadata"].get("source") or found["id"] or "document")
                    text = _file(found["text"], found["metadata"])
                except (ValueError, LookupError, TypeError, AttributeError):
                    # Something else has written to where the loader answers.
                    raise self._failure("its answer cannot be read") from None
                counts[source] = counts.get(source, 0) + 1
                key = source if counts[source] == 1 else f"{source}#{counts[source]}"
                self._texts = {key: text}
                short = re.sub(r"[^\w.-]+", "-", source)[-NAME_SIGNS:].strip("-.")
                yield Item(key, f"{short}-{_hash(key)[:8]}.md", _hash(text))
        if problem is not None:
            raise problem

    def check(self) -> None:
        """Import the loader and compare its parameters, without making it; raises CallerError."""
        if (problem := self._read_all(Path(os.devnull), check=True)) is not None:
            hint = "correct its name or its parameters; its module must be found by PYTHONPATH"
            raise CallerError("a loader can be made", value=problem.value, hint=hint)

    def _read_all(self, place: Path, *, check: bool = False) -> SourceError | None:
        """Write the lines of the loader to a file; return why it failed after them, if it did.

        Raises SourceError for one that does not end: then nothing of it is taken.
        """
        settings = self._access.settings
        job = {
            "loader": self._dotted,
            "parameters": self._parameters,
            "private": self._access.private,
            "memory_mb": settings.ingest.parse_memory_mb,
            "longest": self._access.most_bytes,
            "check": check,
        }
        # Own loaders are found where the program itself finds modules.
        paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        known = os.pathsep.join(map(os.path.abspath, paths))
        self._process = ParserProcess(WORKER, PYTHONPATH=known)
        count = 0
        try:
            self._process.send(job)
            until = time.monotonic() + settings.sources.loader_timeout_s
            with place.open("wb") as file:
                while (line := self._line(until, count)) != b"E":
                    if line.startswith(b'{"error"'):
                        return self._failure(str(json.loads(line)["error"]))
                    count += 1
                    self.bytes_read += len(line)
                    self._check_size(count)
                    file.write(line + b"\n")
        except DocumentError as error:
            return SourceError(error.rule)
        except ChildEndedError:
            return self._failure("its process has ended before it was done")
        return None

    def _line(self, until: float, count: int) -> bytearray:
        """Return what the loader says next; raises SourceError when its time is over."""
        assert self._process is not None
        while (left := until - time.monotonic()) > 0:
            try:
                return self._process.line(min(left, WAIT_S), 2 * self._access.most_bytes)
            except TimeoutError:
                self._access.pause()
        most = self._access.settings.sources.loader_timeout_s
        rule = f"a loader ends within {most:g} s (sources.loader_timeout_s)"
        shown = f"{self._dotted}, after {count} documents"
        raise SourceError(rule, value=shown, hint=NOTHING)

    def _check_size(self, count: int) -> None:
        settings = self._access.settings
        most, mb = settings.sources.max_items, settings.ingest.zip_total_mb
        if count > most or self.bytes_read > mb << 20:
            rule = f"a loader gives at most {most} documents (sources.max_items)"
            rule += f" and {mb} MB (ingest.zip_total_mb)"
            raise SourceError(rule, value=self._dotted, hint=NOTHING)

    def _failure(self, reason: str) -> SourceError:
        for secret in self._secrets:
            reason = reason.replace(secret, "…")
        hint = "what it brought before is kept; correct its parameters"
        return SourceError("the loader fails", value=f"{self._dotted}: {reason}", hint=hint)

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Write the document that was listed last."""
        target.write_text(self._texts[item.key], encoding="utf-8", errors="replace")
        return Received(item.mark)

    def close(self) -> None:
        """End the process, and what it has started."""
        if self._process is not None:
            self._process.close()


def _file(text: str, metadata: Mapping[str, Any]) -> str:
    """Return a document as Markdown, its metadata before it."""
    kept = {
        name: value
        for name, value in list(metadata.items())[:VALUES]
        if isinstance(value, str | int | float | bool) and len(str(value)) <= LONGEST_VALUE
    }
    if not kept:
        return text
    return f"---\n{yaml.safe_dump(kept, allow_unicode=True)}---\n\n{text}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
