"""Measure questions that need several searches, and write a report with every table.

    python -m benchmarks.multihop DATA --results DIR [--write REPORT.md]
        [--sections retrieval,answers] [--sets musique_small,...] [--limit N] [--single-limit 300]
        [--set name=value]...

DATA is a folder of data sets in the BEIR layout, each in a folder of its name. Every section keeps
what it found on a set in DIR/SECTION-SET.json and is measured once; a section that --sections names
is measured again. --write draws the tables of all that DIR holds. --limit is the most
questions of a set, --single-limit of a set of single-hop questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.multihop_measure import SECTIONS, SINGLE, Found, Given
from benchmarks.multihop_page import report
from cli.options import settings_from
from cli.terminal.output import write_files
from core.errors import CallerError, CarrelError
from core.settings import Settings

FORMAT = 1  # of what is kept; what another format was kept in is measured again
SINGLE_LIMIT = 300
WHOLE_SETS = ("kinds", "decompositions")  # cheap enough for all questions of a set


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and write the report."""
    given = _parsed(arguments)
    try:
        settings = settings_from(None, given.set)
        given.results.mkdir(parents=True, exist_ok=True)
        for section, name in wanted(given.sections, given.sets):
            measure(section, name, given, settings)
        if given.write:
            write_files({given.write: report(kept(given.results), settings)})
    except CarrelError as error:
        sys.exit(f"multihop: {error}")


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--sections", type=_names, default=[])
    parser.add_argument("--sets", type=_names, default=[])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--single-limit", type=int, default=SINGLE_LIMIT)
    parser.add_argument("--set", action="append", default=[])
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def wanted(sections: Sequence[str], sets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the sections to measure, each with a data set; nothing named means all.

    Raises CallerError for an unknown name.
    """
    known = dict.fromkeys(name for _, usual in SECTIONS.values() for name in usual)
    for names, allowed in ((sections, SECTIONS), (sets, known)):
        for name in names:
            if name not in allowed:
                raise CallerError("the name must be known", value=name, hint=", ".join(allowed))
    for section in sections or SECTIONS:
        for name in SECTIONS[section][1]:
            if not sets or name in sets:
                yield section, name


def measure(section: str, name: str, given: argparse.Namespace, settings: Settings) -> None:
    """Measure a section on a set and keep what it found, unless that is there already."""
    path = given.results / f"{section}-{name}.json"
    limits = [given.limit]
    if section not in WHOLE_SETS and name in SINGLE:
        limits.append(given.single_limit)
    limit = min((one for one in limits if one is not None), default=None)
    made_with = {"limit": limit, "set": sorted(given.set)}
    if section not in given.sections and _read(path).get("made_with") == made_with:
        return
    say(f"{section} · {name}", end=True)
    found = SECTIONS[section][0](Given(given.data / name, settings, _progress, limit))
    if found:
        kept_as = {"format": FORMAT, "made_with": made_with, "found": found}
        write_files({path: json.dumps(kept_as, ensure_ascii=False)})


def kept(results: Path) -> dict[str, dict[str, Found]]:
    """Return what was found, by section and data set, in the order of the report."""
    found: dict[str, dict[str, Found]] = {}
    for section, name in wanted([], []):
        read = _read(results / f"{section}-{name}.json")
        if read:
            found.setdefault(section, {})[name] = {**read["found"], "made_with": read["made_with"]}
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return read if isinstance(read, dict) and read.get("format") == FORMAT else {}


def _progress(stage: str, done: int, total: int) -> None:
    say(f"  {stage} {done}/{total or '?'}", end=done == total)


def say(text: str, *, end: bool) -> None:
    """Tell how far the work is; on a terminal one line counts."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if end else "", file=sys.stderr, flush=True)
    elif end:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
