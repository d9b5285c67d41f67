"""Forget documents, sources and tenants, and look for their bytes in the whole data directory.

python -m benchmarks.erasure [--each 20] [--stay 2000] [--served] [--seed 1]

Marked documents (English, Russian, Ukrainian, Chinese; Markdown, HTML, text) lie among others that
stay. Each is asked about, alone and in a conversation that goes on, and its answer gets a comment.
Then each is forgotten: by its name, with its folder, or with its tenant; with `--served` through a
server that has the directory open all the time. Looked for afterwards, in every file: its words,
title, file name and text in UTF-8, UTF-16 and JSON escapes, and parts of its vectors. The exit code
is 1 when any is found or a document that stays is lost.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.session import Session
from core.auth import AuthContext
from core.settings import Settings
from ingest.pipeline import Pipeline
from stores.lock import read_owner
from stores.store import parts

SOUNDS = {
    "en": ("bdfgklmnprstvz", "aeiou"),
    "ru": ("бвгдклмнпрстз", "аеиоу"),
    "uk": ("бвгдклмнпрстз", "аеиоі"),
    "zh": ("鑫淼焱垚犇骉羴猋", "赑麤毳掱刕厽孨晶"),
}
TEXTS = {
    "en": "The {0} bridge was opened in 1{1} by {2}. It crosses the {3} river near the old mill.",
    "ru": "Мост {0} был открыт в 1{1} году, его построил {2}. Он стоит на реке {3}.",
    "uk": "Міст {0} був відкритий у 1{1} році, його збудував {2}. Він стоїть на річці {3}.",
    "zh": "{0}桥于1{1}年开放。它由{2}建造，横跨{3}河。",
}
QUESTIONS = {
    "en": "When was the {0} bridge opened?",
    "ru": "Когда был открыт мост {0}?",
    "uk": "Коли був відкритий міст {0}?",
    "zh": "{0}桥什么时候开放？",
}
FILLER = (
    "{0} is a town of {1} people. Its market is held on the {2} day of the week, and its school"
    " has {3} rooms. The road to the coast is {4} km long."
)


@dataclass
class Marked:
    """Hold one document that is to be forgotten, and every text that may tell of it."""

    tenant: str
    language: str
    file: str
    words: list[str]
    question: str
    text: str
    title: str
    vectors: list[bytes] = field(default_factory=list)

    def needles(self) -> set[bytes]:
        """Return what must be found nowhere afterwards: texts, names, and parts of vectors.

        The word that people asked with is theirs, and stays.
        """
        texts = [*self.words[1:], self.title, Path(self.file).stem, self.text]
        return {one for text in texts for one in encoded(text)} | set(self.vectors)


def encoded(text: str) -> set[bytes]:
    """Return a text as it may lie in a file: UTF-8, UTF-16 and escaped as JSON does."""
    escaped = text.encode("ascii", "backslashreplace")
    return {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), escaped}


def word(draw: random.Random, language: str, syllables: int = 5) -> str:
    """Make up a word that nothing else says."""
    hard, soft = SOUNDS[language]
    return "".join(draw.choice(hard) + draw.choice(soft) for _ in range(syllables))


def marked(draw: random.Random, folder: Path, tenant: str, place: str, number: int) -> Marked:
    """Write a document into a file of its own, in one of four languages and three formats."""
    language = list(SOUNDS)[number % len(SOUNDS)]
    words = [word(draw, language) for _ in range(3)]
    text = TEXTS[language].format(words[0], draw.randrange(100, 999), words[1], words[2])
    title, name = word(draw, language), word(draw, "en")
    kind = ("md", "html", "txt")[number % 3]
    file = f"{place}/{name}.{kind}"
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    body = {
        "md": f"# {title}\n\n{text}\n",
        "html": f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>",
        "txt": f"{title}\n\n{text}\n",
    }[kind]
    path.write_text(body, encoding="utf-8")
    question = QUESTIONS[language].format(words[0])
    return Marked(tenant, language, file, words, question, text, title)


def fillers(draw: random.Random, folder: Path, count: int) -> None:
    """Write documents that stay, one to a line."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "towns.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            town = word(draw, "en", 3).title()
            figures = [draw.randrange(2, 9000) for _ in range(4)]
            text = FILLER.format(town, *figures)
            line = {"_id": f"town-{number}", "title": town, "text": text}
            file.write(json.dumps(line) + "\n")


def vectors_of(data: Path, needle: str) -> Iterator[bytes]:
    """Yield a part of each vector of the chunks that hold a text, as the files may have it."""
    with closing(sqlite3.connect(data / "catalogue.sqlite3")) as connection:
        for table, column in (("embeddings", "vector"), ("sentence_vectors", "vectors")):
            rows = connection.execute(
                f"SELECT e.{column} FROM {table} e JOIN chunks c USING (content_hash)"
                " WHERE instr(c.text, ?)",
                (needle,),
            )
            for (blob,) in rows:
                yield from (part for part in (blob[:24], blob[64:88]) if len(part) == 24)


def holding(folder: Path, needles: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Return which of the needles each file holds, in its content or its name."""
    wanted = list(needles)
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.relative_to(folder).as_posix().encode() + b"\0"
        content += path.read_bytes() if path.is_file() else b""
        if hits := [one for one in wanted if one in content]:
            found[path.relative_to(folder).as_posix()] = hits
    return found


KINDS = ("document", "source", "tenant")
COLLECTION, TENANT = "default", "acme"


def ingest(session: Session, tenant: str, folder: Path) -> None:
    """Read a folder into the tenant's collection."""
    assert session.embedder is not None
    target = session.store.intake.open_collection(tenant, COLLECTION, None)
    summary = Pipeline(session.store, session.embedder, session.settings, target).run([folder])
    assert not summary.failed, summary.failed[:3]


def ask(session: Session, one: Marked) -> bool:
    """Ask about a document, alone and in a conversation, and comment; return whether it answers."""
    auth = AuthContext(tenant=one.tenant, user="ann")
    run = session.ask(one.question, auth, COLLECTION)
    kept = session.store.runs.create_conversation(one.tenant, "ann", COLLECTION)
    session.ask(one.question, auth, "", conversation=kept.id, clarify=True)
    session.ask(f"{one.words[0]}?", auth, "", conversation=kept.id, clarify=True)
    comment = f"It tells of {one.words[0]}."  # as the person typed it, which stays
    session.store.runs.save_feedback(one.tenant, "ann", run.run_id, "up", comment)
    return any(word in json.dumps(run.result, ensure_ascii=False) for word in one.words)


def prepare(data: Path, files: Path, given: argparse.Namespace) -> dict[str, list[list[Marked]]]:
    """Make a data directory; return the groups that are forgotten together, by kind."""
    draw = random.Random(given.seed)
    groups: dict[str, list[list[Marked]]] = {kind: [] for kind in KINDS}
    fillers(draw, files / TENANT, given.stay)
    number = 0
    for kind, size in zip(KINDS, (1, 5, 5), strict=True):
        for group in range(given.each if kind == "document" else max(1, given.each // size)):
            tenant = f"tenant{group}" if kind == "tenant" else TENANT
            place = f"{kind}{group}" if kind == "source" else kind
            made = []
            for _ in range(size):
                made.append(marked(draw, files / tenant, tenant, place, number))
                number += 1
            groups[kind].append(made)
    with Session(
        Settings(data=data, reasoner="rules"), create=True, needs_embedder=True
    ) as session:
        for tenant in sorted(path.name for path in files.iterdir()):
            ingest(session, tenant, files / tenant)
        all_of_them = [one for kind in KINDS for group in groups[kind] for one in group]
        answered = sum(ask(session, one) for one in all_of_them)
    print(f"{len(all_of_them)} marked documents, {answered} found by a question", file=sys.stderr)
    for one in all_of_them:
        one.vectors = list(vectors_of(data, one.text))
        assert one.vectors
    return groups


def command(data: Path, kind: str, group: Sequence[Marked]) -> dict[str, Any]:
    """Forget a group at the command line."""
    one = group[0]
    what = {
        "document": [one.file],
        "source": ["--source", f"{Path(one.file).parent}/*"],
        "tenant": ["--tenant", one.tenant],
    }[kind]
    if kind != "tenant":
        what += ["--tenant", one.tenant, "--collection", COLLECTION]
    program = "from cli.app import main; main()"
    options = ["--data", str(data), "--json", "--yes"]
    done = subprocess.run(
        [sys.executable, "-c", program, "forget", *what, *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def served(data: Path, wanted: bool) -> Iterator[None]:
    """Run a server on the directory meanwhile, when it is wanted."""
    if not wanted:
        yield
        return
    program = "from cli.app import main; main()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        while (owner := read_owner(data)) is None or not owner.port:
            assert server.poll() is None, "the server ended"
            time.sleep(0.2)
        yield
        server.terminate()


def hits(found: dict[str, list[bytes]]) -> int:
    """Count what was found in all files."""
    return sum(len(needles) for needles in found.values())


def forgotten(data: Path, kind: str, groups: Sequence[Sequence[Marked]]) -> dict[str, float]:
    """Forget groups one after the other; return hits before and after, and the slowest."""
    row = {"erasures": 0, "documents": 0, "before": 0, "after": 0, "seconds": 0.0}
    for group in groups:
        needles = {needle for one in group for needle in one.needles()}
        row["before"] += hits(holding(data, needles))
        began = time.perf_counter()
        row["documents"] += command(data, kind, group)["erased"]["documents"]
        row["seconds"] = max(row["seconds"], time.perf_counter() - began)
        left = holding(data, needles)
        for name, found in left.items():
            shown = [one.decode("utf-8", "backslashreplace") for one in found]
            print(kind, group[0].file, name, shown, file=sys.stderr)
        row["after"] += hits(left)
        row["erasures"] += 1
    return row


def measure(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Forget all groups; return hits before and after, and seconds, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        data, files = Path(folder) / "data", Path(folder) / "files"
        groups = prepare(data, files, given)
        with served(data, given.served):
            rows = {kind: forgotten(data, kind, groups[kind]) for kind in KINDS}
        with Session(Settings(data=data, reasoner="rules")) as session:
            stay = parts(session.store).database.read().execute("SELECT count(*) FROM documents")
            rows["stay"] = {"documents": stay.fetchone()[0], "wanted": given.stay}

            rows["stay"]["problems"] = len(session.store.maintenance.examine()["problems"])
        return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=20, help="documents of each kind")
    parser.add_argument("--stay", type=int, default=2000, help="documents that stay")
    parser.add_argument("--served", action="store_true", help="through a running server")
    parser.add_argument("--seed", type=int, default=1)
    rows = measure(parser.parse_args())
    print(
        f"{'kind':10} {'erasures':>8} {'documents':>9} {'before':>8} {'after':>6} {'slowest s':>9}"
    )
    for kind in KINDS:
        row = rows[kind]
        print(
            f"{kind:10} {row['erasures']:8} {row['documents']:9} {row['before']:8}"
            f" {row['after']:6} {row['seconds']:9.1f}"
        )
    stay = rows["stay"]
    print(f"stay: {stay['documents']} of {stay['wanted']}, {stay['problems']} problems")
    found = sum(rows[kind]["after"] for kind in KINDS)
    sys.exit(1 if found or stay["documents"] != stay["wanted"] or stay["problems"] else 0)


if __name__ == "__main__":
    main()
