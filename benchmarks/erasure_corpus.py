"""Documents that can be found again by their bytes: marked words, names and vectors."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

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
