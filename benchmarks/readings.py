"""Compare what is read of files with another reading of them: words found, words added, order.

    python -m benchmarks.readings FOLDER... [--suffixes .pdf .docx] [--show 12] [--below 0.98]

Beside each FILE stands FILE.expected.txt (UTF-8): its text by other hands, of a person or another
program. Prints a line per file below --below, with the words that are missing and those too many,
then a row per format: the share of the expected words that are there (as often as expected), the
share of ours that are expected, and the share of expected pairs of neighbours that are neighbours.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.settings import load_settings
from ingest.clean import clean_document
from ingest.discover import SourceFile
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import Sandbox
from ingest.types import LoadFailure
from ingest.usable import load

_EXPECTED = ".expected.txt"
# Scripts without spaces count by character.
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff]|[^\W_]+")
_SHOWN = 60


@dataclass(frozen=True)
class Reading:
    """How a file's text agrees with the other reading; shares are in 0..1."""

    name: str
    words: int
    found: float
    ours: float
    order: float
    missing: list[str]
    added: list[str]
    reasons: list[str]

    def line(self) -> str:
        """Return the row of the table."""
        shares = f"{self.words:7} {self.found:6.3f} {self.ours:6.3f} {self.order:6.3f}"
        return f"{self.name[-_SHOWN:]:{_SHOWN}} {shares}"


def words_of(text: str) -> list[str]:
    """Return the words of a text, without case, ligatures and wide forms told apart."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u00ad", "").casefold())


def compared(name: str, read: str, expected: str, reasons: Iterable[str] = ()) -> Reading:
    """Compare two readings; an expected text without words counts as found."""
    ours, theirs = words_of(read), words_of(expected)
    have, want = Counter(ours), Counter(theirs)
    common = (have & want).total()
    pairs, wanted = (
        Counter(zip(ours, ours[1:], strict=False)),
        Counter(zip(theirs, theirs[1:], strict=False)),
    )
    return Reading(
        name=name,
        words=len(theirs),
        found=common / len(theirs) if theirs else 1.0,
        ours=common / len(ours) if ours else 1.0,
        order=(pairs & wanted).total() / wanted.total() if wanted else 1.0,
        missing=_in_order(theirs, want - have),
        added=_in_order(ours, have - want),
        reasons=list(reasons),
    )


def _in_order(words: list[str], counted: Counter[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if counted[word] > 0]


def text_of(path: Path, limits: LoadLimits, sandbox: Sandbox) -> tuple[str, list[str]]:
    """Return all that is read of a file, titles and sections once each, and the reasons."""
    parts: list[str] = []
    reasons: list[str] = []
    for item in load(SourceFile(path, path.name), limits, sandbox):
        if isinstance(item, LoadFailure):
            reasons.append(item.reason)
            continue
        document = clean_document(item)
        section = ""
        for block in document.blocks:
            if block.section != section:
                parts += _opened(section, block.section)
                section = block.section
            parts.append(block.text)
    return "\n".join(parts), reasons


def _opened(before: str, section: str) -> Iterator[str]:
    """Yield the headings that a section opens; a heading without text is a block already."""
    old, new = before.split(" › "), section.split(" › ")
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    yield from new[same:]


def main() -> int:
    """Print the shares; return 1 when no pair was found."""
    arguments = _arguments()
    limits = LoadLimits.of(load_settings()[0])
    rows: dict[str, list[Reading]] = defaultdict(list)
    with Sandbox() as sandbox:
        for path in _files(arguments.folders, arguments.suffixes):
            expected = path.with_name(path.name + _EXPECTED).read_text("utf-8", "replace")
            row = compared(str(path), *_first(text_of(path, limits, sandbox), expected))
            rows[path.suffix.lower()].append(row)
            if min(row.found, row.order) < arguments.below:
                print(row.line())
                for label, told in (("-", row.missing), ("+", row.added), ("!", row.reasons)):
                    if told and arguments.show:
                        print(f"    {label} {' '.join(told[: arguments.show])}")
    print(f"{'format':10} {'files':>5} {'words':>8} {'found':>6} {'ours':>6} {'order':>6}  median")
    for suffix, readings in sorted(rows.items()):
        print(_summary(suffix, readings))
    return 0 if rows else 1


def _first(read: tuple[str, list[str]], expected: str) -> tuple[str, str, list[str]]:
    return read[0], expected, read[1]


def _summary(suffix: str, readings: list[Reading]) -> str:
    """Weigh each file alike: long ones would hide the rest."""
    count = len(readings)
    shares = [
        sum(getattr(r, name) for r in readings) / count for name in ("found", "ours", "order")
    ]
    median = sorted(r.found for r in readings)[count // 2]
    words = sum(reading.words for reading in readings)
    told = " ".join(f"{share:6.3f}" for share in shares)
    return f"{suffix:10} {count:5} {words:8} {told}  {median:.3f}"


def _files(folders: list[Path], suffixes: list[str]) -> Iterator[Path]:
    for folder in folders:
        for expected in sorted(folder.rglob(f"*{_EXPECTED}")):
            path = expected.with_name(expected.name.removesuffix(_EXPECTED))
            if path.is_file() and (not suffixes or path.suffix.lower() in suffixes):
                yield path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, help="folders with pairs of files")
    parser.add_argument("--suffixes", nargs="*", default=[], help="compare only these")
    parser.add_argument(
        "--show", type=int, default=12, help="words named of each kind (default 12)"
    )
    parser.add_argument(
        "--below", type=float, default=0.98, help="share below which a file is told"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
