"""Two notes that say the same but a word differ, unless that word is asked about."""

from __future__ import annotations

import pytest

from core.notes import WORDS
from core.types import Evidence, SubQuestion
from reasoning.conflicts import differing


def note(text: str, language: str, subject: str = f"{WORDS}fact|any") -> Evidence:
    return Evidence(
        evidence_id=text, chunk_id=text, document_id=text, document_key=text, source="",
        title="", section="", text=text, kind="note", language=language,
        metadata={"subject": subject, "value": "yes"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("language", "one", "other", "asked", "differ"),
    [
        ("en", "Hanna feeds the hens.", "Piotr feeds the hens.", "Who feeds the hens?", True),
        ("ru", "Проверка у нас в мае.", "Проверка у нас в июне.", "Когда проверка?", True),
        ("uk", "У човні шість місць.", "У човні вісім місць.", "Скільки місць у човні?", True),
        ("zh", "我们四月检查。", "我们五月检查。", "我们什么时候检查？", True),
        ("en", "The boat is blue.", "The car is red.", "What colour is the boat?", False),
        ("en", "Ann feeds the hens.", "Ann feeds the pigs.", "Who feeds the hens?", False),
        (
            "en",
            "The club meets on Sundays.",
            "The club meets in the cafe.",
            "Where is the club?",
            False,
        ),
        ("en", "Badger runs on Postgres.", "Sofia manages Badger.", "What runs Badger?", False),
        ("ru", "Клуб в субботу.", "Клуб в кафе.", "Где клуб?", False),
        ("en", "The hall seats ninety.", "Lunch is at noon.", "How many seats has it?", False),
    ],
)
def test_notes_differ_by_a_word_that_is_not_asked_about(
    language: str, one: str, other: str, asked: str, differ: bool
) -> None:
    question = SubQuestion(id="q", text=asked, query=asked, language=language)
    found = differing(note(one, language), [note(other, language)], question)
    assert bool(found) == differ


def test_a_note_of_a_known_attribute_is_compared_by_its_value_alone() -> None:
    question = SubQuestion(id="q", text="What do I like?", query="like", language="en")
    likes = [note(f"I like {one}.", "en", "i|like") for one in ("jazz", "opera")]
    assert not differing(likes[0], likes[1:], question)
