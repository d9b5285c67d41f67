"""Read every file of some folders, and damaged copies: each ends in text or in a reason.

    python -m benchmarks.parser_files FOLDER... [--mutations 20] [--seed 7] [--suffixes .pdf .docx]

Prints a line per file (of damaged copies only the bad ones). Exit code 1 when a file takes longer
than --seconds, crashes its parser, or ends in a reason that names no cause.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.mutations import MUTATIONS, mutated
from core.errors import shorten
from core.settings import load_settings
from ingest.clean import clean_document
from ingest.discover import SourceFile, discover
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import Sandbox
from ingest.types import LoadFailure
from ingest.usable import load

_UNNAMED = re.compile(r"\w(?:Error|Exception|Warning)\b|no usable answer")
_CRASHED = re.compile(r"parser crashed|does not start")
_SHOWN = 60
_TEXTS = 100


@dataclass
class Outcome:
    """What came of one file."""

    name: str
    documents: int = 0
    blocks: int = 0
    characters: int = 0
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def faults(self, seconds: float) -> list[str]:
        """Return what is wrong with it, which is nothing of the file's own."""
        found = []
        if self.seconds > seconds:
            found.append("slow")
        if not self.documents and not self.reasons:
            found.append("silent")
        if any(_CRASHED.search(reason) for reason in self.reasons):
            found.append("crashed")
        if any(_UNNAMED.search(reason) for reason in self.reasons):
            found.append("unnamed")
        return found

    def line(self, faults: list[str]) -> str:
        """Return the row of the table."""
        got = f"{self.documents:6} {self.blocks:7} {self.characters:10} {self.seconds:7.2f}"
        more = f" (+{len(self.reasons) - 1})" if len(self.reasons) > 1 else ""
        said = shorten(self.reasons[0], 160) + more if self.reasons else ""
        marks = " ".join(f"[{fault}]" for fault in faults)
        return f"{self.name[-_SHOWN:]:{_SHOWN}} {got}  {marks} {said}".rstrip()


def main() -> int:
    """Print the outcomes; return 1 when one of them is a fault of the parsers."""
    arguments = _arguments()
    limits = LoadLimits.of(load_settings()[0])
    counts: Counter[str] = Counter()
    slowest = Outcome("")
    print(f"{'file':{_SHOWN}} {'docs':>6} {'blocks':>7} {'chars':>10} {'seconds':>7}")
    with Sandbox() as sandbox:
        for outcome, quiet in _outcomes(arguments, limits, sandbox):
            faults = outcome.faults(arguments.seconds)
            counts["files"] += 1
            counts["read" if outcome.documents else "refused"] += 1
            counts.update(faults)
            slowest = max(slowest, outcome, key=lambda one: one.seconds)
            if faults or not quiet:
                print(outcome.line(faults), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong = counts["slow"] + counts["silent"] + counts["crashed"] + counts["unnamed"]
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"slowest {slowest.seconds:.1f} s ({slowest.name}); peak memory here {peak:.0f} MB")
    return 1 if wrong or not counts["files"] else 0


def _outcomes(
    arguments: argparse.Namespace, limits: LoadLimits, sandbox: Sandbox
) -> Iterator[tuple[Outcome, bool]]:
    files, failures = discover(arguments.folders)
    for failure in failures:
        yield Outcome(failure.path, reasons=[failure.reason]), False
    draw = random.Random(arguments.seed)
    kept = [file for file in files if not arguments.suffixes or _is_one_of(file, arguments)]
    for file in kept:
        yield outcome_of(file, limits, sandbox)[0], arguments.quiet
    small = [file for file in kept if file.path.stat().st_size <= arguments.largest * 2**20]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.mutations * len(small)):
            file = small[number % len(small)]
            kind = draw.choice(MUTATIONS)
            content = mutated(file.path.read_bytes(), kind, draw, draw.choice(small).path)
            copy = Path(folder, "copy" + "".join(file.path.suffixes[-2:]))
            copy.write_bytes(content)
            source = SourceFile(copy, f"{file.relative}:{kind}:{number}")
            outcome, _ = outcome_of(source, limits, sandbox)
            if arguments.keep and outcome.faults(arguments.seconds):
                (arguments.keep / f"{number}-{kind}-{file.path.name}").write_bytes(content)
            yield outcome, True


def _is_one_of(file: SourceFile, arguments: argparse.Namespace) -> bool:
    return any(file.path.name.lower().endswith(suffix) for suffix in arguments.suffixes)


def outcome_of(file: SourceFile, limits: LoadLimits, sandbox: Sandbox) -> tuple[Outcome, str]:
    """Read a file; return what came of it, and the beginnings of its texts and reasons."""
    found = Outcome(file.relative)
    texts: list[str] = []
    started = time.monotonic()
    for item in load(file, limits, sandbox):
        if isinstance(item, LoadFailure):
            found.reasons.append(item.reason)
            continue
        document = clean_document(item)
        found.documents += 1
        found.blocks += len(document.blocks)
        found.characters += sum(len(block.text) for block in document.blocks)
        if len(texts) < _TEXTS:
            texts += [document.title, *(block.text for block in document.blocks[:_TEXTS])]
    found.seconds = time.monotonic() - started
    return found, "\n".join([*texts, *found.reasons[:_TEXTS]])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders or files to read")
    parser.add_argument("--mutations", type=int, default=0, help="damaged copies per file")
    parser.add_argument("--seed", type=int, default=7, help="of the damage (default 7)")
    parser.add_argument("--seconds", type=float, default=60, help="for one file (default 60)")
    parser.add_argument(
        "--largest", type=float, default=1, help="MB of a file to damage (default 1)"
    )
    parser.add_argument("--suffixes", nargs="*", default=[], help="read only these")
    parser.add_argument("--quiet", action="store_true", help="print only the bad ones")
    parser.add_argument("--keep", type=Path, help="folder for the damaged copies that went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
