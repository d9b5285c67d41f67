"""Any document loader of LangChain, by its dotted name, in a process of its own.

It may reach public addresses and read the paths that its parameters name; it may not start a
program, nor write but to a folder that goes with it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from core.errors import DocumentError
from ingest.connectors.address import Address, filled
from ingest.connectors.types import Access, Item, Received, SourceError
from ingest.sandbox.pool import ChildEndedError, ParserProcess
from ingest.types import LoadFailure

WORKER = "ingest.sandbox.loader_worker"
VALUES, LONGEST_VALUE = 20, 300  # of the metadata that are kept; chosen, not measured
NAME_SIGNS = 60  # of a source in the name of its file


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
        self._waited = 0.0
        self.complete = True
        self.bytes_read = 0
        self.failed: list[LoadFailure] = []

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the documents as the loader gives them."""
        settings = self._access.settings
        self._process = ParserProcess(WORKER)
        job = {
            "loader": self._dotted,
            "parameters": self._parameters,
            "private": self._access.private,
            "memory_mb": settings.ingest.parse_memory_mb,
            "longest": self._access.most_bytes,
        }
        try:
            self._process.send(job)
        except DocumentError as error:
            raise SourceError(error.rule) from None
        except ChildEndedError:
            raise self._failure("the process of the loader does not start") from None
        counts: dict[str, int] = {}
        while (line := self._line()) != b"E":
            found = json.loads(line)
            if "error" in found:
                raise self._failure(found["error"])
            self.bytes_read += len(line)
            if "refused" in found:
                self.failed.append(LoadFailure(path=found["refused"], reason=found["reason"]))
                continue
            source = str(found["metadata"].get("source") or found["id"] or "document")
            counts[source] = counts.get(source, 0) + 1
            key = source if counts[source] == 1 else f"{source}#{counts[source]}"
            text = _file(found["text"], found["metadata"])
            self._texts = {key: text}
            short = re.sub(r"[^\w.-]+", "-", source)[-NAME_SIGNS:].strip("-.")
            yield Item(key, f"{short}-{_hash(key)[:8]}.md", _hash(text))

    def _line(self) -> bytearray:
        """Return what the loader says next: only the time it takes itself is counted."""
        assert self._process is not None
        most = self._access.settings.sources.loader_timeout_s
        started = time.monotonic()
        try:
            return self._process.line(most - self._waited, 2 * self._access.most_bytes)
        except TimeoutError:
            rule = f"a loader takes at most {most:g} s (sources.loader_timeout_s)"
            raise SourceError(rule, value=self._dotted) from None
        except ChildEndedError:
            raise self._failure("its process has ended before it was done") from None
        finally:
            self._waited += time.monotonic() - started

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
