"""Read hostile files of every kind: each ends in text or reason, none calls out, reads or writes.

    python -m benchmarks.hostile_files [--seconds 90] [--only bomb]

A server on the loopback counts calls, a file holds a secret that no text may show, and the places
that attacks aim at are looked at afterwards. Exit code 1 when a file is slow, crashes its parser
without a reason, or gets anything out.
"""

from __future__ import annotations

import argparse
import resource
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks import hostile_containers, hostile_pdf, hostile_texts
from benchmarks.parser_files import Outcome, outcome_of
from core.settings import load_settings
from ingest.discover import discover
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import Sandbox

SECRET = "the-canary-sings-at-midnight"
_MAX_GROWTH_MB = 100


def main() -> int:
    """Print the outcomes; return 1 when an attack worked or a file took its parser with it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=90, help="for one file (default 90)")
    parser.add_argument("--only", default="", help="files whose names hold this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, secret = Path(place, "files"), Path(place, "secret.txt")
        folder.mkdir()
        secret.write_text(SECRET)
        with Canary() as canary:
            for name, content in corpus(canary.address, str(secret)):
                if arguments.only in name:
                    (folder / name).write_bytes(content)
            wrong = _run(folder, arguments.seconds)
            escaped = list(Path("/tmp").glob("escaped*")) + list(folder.parent.glob("escaped*"))
            print(f"calls {canary.calls}, files written {len(escaped)}")
            return 1 if wrong or canary.calls or escaped else 0


def corpus(address: str, secret: str) -> Iterator[tuple[str, bytes]]:
    """Yield all hostile files as name and content."""
    yield from hostile_containers.bombs()
    yield from hostile_containers.bad_names()
    yield from hostile_containers.entities(address, secret)
    yield from hostile_pdf.hostile(address)
    yield from hostile_texts.hostile(address, secret)


def _run(folder: Path, seconds: float) -> int:
    files, failures = discover([folder])
    limits = LoadLimits.of(load_settings()[0])
    counts: Counter[str] = Counter()
    wrong = 0
    before = _peak_mb()
    for failure in failures:
        print(Outcome(failure.path, reasons=[failure.reason]).line([]))
        counts["refused"] += 1
    with Sandbox() as sandbox:
        for file in files:
            outcome, text = outcome_of(file, limits, sandbox)
            faults = outcome.faults(seconds)
            if SECRET in text:
                faults.append("secret")
            wrong += bool(faults)
            counts["read" if outcome.documents else "refused"] += 1
            counts.update(faults)
            print(outcome.line(faults), flush=True)
    growth = _peak_mb() - before
    print(
        f"files {len(files) + len(failures)}, " + ", ".join(f"{k} {v}" for k, v in counts.items())
    )
    print(f"memory of this process grew by {growth:.0f} MB (at most {_MAX_GROWTH_MB})")
    return wrong + (growth > _MAX_GROWTH_MB)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Canary:
    """A server on the loopback that nobody should call."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.calls = 0

    def __enter__(self) -> Canary:
        """Count calls from now on."""
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for a late call, and stop."""
        time.sleep(0.2)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            caller.close()


if __name__ == "__main__":
    sys.exit(main())
