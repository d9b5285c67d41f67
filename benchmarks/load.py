"""Measure a server under many users at once.

python -m benchmarks.load DATASET [--users 100] [--minutes 10] [--think 10] [--flood 20]
[--stub-model] [--set NAME=VALUE]... [--json OUT]

DATASET is a folder in the BEIR layout; its passages are served and its questions asked, drawn at
random with repetition. Each user has a key, sends a request, reads the answer, thinks between half
and one and a half times --think seconds and goes on: half of the requests are searches, a quarter
questions, a quarter streamed questions. With --flood a last user joins for the last third and asks
so many questions at once without a pause; the others' times before and with it are compared.
The users run on the same machine in another process and take their share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.load_report import report
from benchmarks.load_server import Server, served
from benchmarks.load_users import Load, flooder, user
from benchmarks.stub_model import stub_model
from core.settings import load_settings
from evals.corpus import build_corpus
from evals.dataset import read_dataset

SAMPLE_SECONDS = 5


def say(text: str) -> None:
    """Say on stderr what is being done."""
    sys.stderr.write(f"{text}\n")


def prepared(dataset_folder: Path, folder: Path) -> tuple[Path, list[str]]:
    """Return a data directory with the passages, a copy of its own, and the questions."""
    dataset = read_dataset(dataset_folder, allow_missing=True, judged_only=False)
    settings, _ = load_settings({})
    corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
    data = folder / "data"
    shutil.copytree(corpus.settings.data, data, ignore=shutil.ignore_patterns("owner.lock"))
    return data, [query.text for query in dataset.queries]


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments, with those that every load has."""
    parser.add_argument("--stub-model", action="store_true", help="let a stub of a model decide")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    return parser.parse_args()


def tell(figures: dict[str, Any], path: Path | None) -> None:
    """Print the figures as one JSON object, and write them to a file where one is named."""
    text = json.dumps(figures, indent=1) + "\n"
    if path:
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


async def watch(server: Server, load: Load, until: float) -> None:
    """Sample the server's memory until the time is over."""
    while load.now < until:
        server.sample(load.now)
        await asyncio.sleep(SAMPLE_SECONDS)


async def run(server: Server, load: Load, given: argparse.Namespace) -> None:
    """Let the users work."""
    until = given.minutes * 60
    people = [user(load, number, server.keys[number], until) for number in range(given.users)]

    async def flood() -> None:
        if given.flood:
            await asyncio.sleep(until * 2 / 3)
            await flooder(load, given.users, server.keys[given.users], given.flood, until)

    await asyncio.gather(*people, flood(), watch(server, load, until))


def measure(given: argparse.Namespace, extra: Sequence[str]) -> dict[str, Any]:
    """Serve, load, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        say("ingesting")
        data, questions = prepared(given.dataset, Path(folder))
        with served(data, given.users + 1, [*extra, *given.set]) as server:
            say(f"ready after {server.ready_seconds:.1f} s; {given.users} users")
            before = server.metrics()
            load = Load(server.url, questions, given.think)
            asyncio.run(run(server, load, given))
            return report(server, load, before, server.metrics(), given)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--think", type=float, default=10, help="mean seconds between requests")
    parser.add_argument("--flood", type=int, default=0, help="questions at once of one more user")
    given = parsed(parser)
    with stub_model() if given.stub_model else contextlib.nullcontext([]) as extra:
        figures = measure(given, extra or ["reasoner=rules"])
    tell(figures, given.json)


if __name__ == "__main__":
    main()
