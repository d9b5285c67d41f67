"""The reader chooses the sentence that answers, in every language, or says that none does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_models import embedder_of

from core.cache import local_cache
from core.errors import ModelError
from models import packed_embedder as reader
from models.embeddings import EMBEDDED, CachedEmbedder, Embedder, Reads, SpanPassage
from models.table import READER, published_weights


def passage(*sentences: str, heading: str = "") -> SpanPassage:
    spans, text = [], ""
    for one in sentences:
        spans.append((len(text), len(text) + len(one)))
        text += f"{one} "
    return SpanPassage(heading, text.rstrip(), tuple(spans))


TOWER = passage(
    "The tower stands beside the old harbour.",
    "It was finished in 1887 after six years of work.",
    "Visitors climb 210 steps to its top.",
    heading="Harbour tower",
)
BASHNYA = passage(
    "Башня стоит рядом со старой гаванью.",
    "Её достроили в 1887 году после шести лет работы.",
    "Посетители поднимаются по 210 ступеням.",
    heading="Портовая башня",
)
TA = passage(
    "塔位于旧港口旁边。",
    "经过六年的施工，它于1887年完工。",
    "游客要爬210级台阶才能到达塔顶。",
    heading="港口塔",
)


@pytest.fixture(scope="module")
def reading(embedded: Embedder) -> Reads:
    assert isinstance(embedded, Reads)
    assert embedded.reads
    return embedded


@pytest.mark.parametrize(
    ("question", "given", "right", "value"),
    [
        ("When was the tower finished?", TOWER, 1, "1887"),
        ("How many steps lead to the top?", TOWER, 2, "210"),
        ("Когда достроили башню?", BASHNYA, 1, "1887"),
        ("Сколько ступеней в башне?", BASHNYA, 2, "210"),
        ("塔是什么时候完工的？", TA, 1, "1887"),
        ("When was the tower finished?", BASHNYA, 1, "1887"),
    ],
)
def test_the_sentence_that_answers_is_the_likeliest(
    reading: Reads, question: str, given: SpanPassage, right: int, value: str
) -> None:
    (rows,) = reading.read(question, [given])
    odds, start, end = rows[rows[:, 0].argmax()].tolist()
    assert odds == rows[right, 0]
    assert value in given.text[int(start) : int(end)]


def test_what_a_passage_does_not_answer_is_less_likely(reading: Reads) -> None:
    (answered,) = reading.read("When was the tower finished?", [TOWER])
    (other,) = reading.read("Who conducts the orchestra of the opera house?", [TOWER])
    assert other[:, 0].max() < 0 < answered[:, 0].max() - other[:, 0].max()


def test_passages_do_not_change_each_other(reading: Reads) -> None:
    both = reading.read("When was the tower finished?", [TA, TOWER])
    alone = [reading.read("When was the tower finished?", [one])[0] for one in (TA, TOWER)]
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_what_is_too_long_to_be_read_is_not_chosen(reading: Reads) -> None:
    filler = " ".join(f"Room {number} is painted grey." for number in range(80))
    (rows,) = reading.read("When was it finished?", [passage(filler, "It was finished in 1887.")])
    assert rows[0, 0] > rows[1, 0] == reader.LEAST
    assert rows[1, 2] == 0


def test_halves_of_characters_and_nothing_at_all_are_read(reading: Reads) -> None:
    (rows,) = reading.read(
        "When was \ud800 finished?\x00", [passage("It was \udc00.", "", "1887.")]
    )
    assert rows.shape == (3, 3)
    assert reading.read("When?", []) == []


def test_what_was_read_is_remembered(embedded: Embedder) -> None:
    cached = CachedEmbedder(embedded, local_cache("embeddings", 64))
    first = cached.read("When was the tower finished?", [TOWER, TA])
    again = cached.read("When was the tower finished?", [TA, TOWER])
    np.testing.assert_array_equal(first[0], again[1])


def line(tmp_path: Path) -> str:
    opened = embedder_of(EMBEDDED, tmp_path / "cache")
    assert isinstance(opened, Reads)
    with pytest.raises(ModelError) as raised:
        opened.read("When?", [TOWER])
    said = str(raised.value)
    assert "\n" not in said
    assert "answering.reader=false" in said
    return said


def test_weights_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FILE", tmp_path / "reader.npz")
    assert "are missing" in line(tmp_path)


def test_weights_that_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = tmp_path / "reader.npz"
    cut.write_bytes(reader.FILE.read_bytes()[:100_000])
    monkeypatch.setattr(reader, "FILE", cut)
    assert "damaged or of another build" in line(tmp_path)


def test_weights_of_another_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(published_weights()[READER], "encoder", "0" * 64)
    assert "belongs to another encoder" in line(tmp_path)
