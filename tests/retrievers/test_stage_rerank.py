"""Re-ranking with a cross-encoder: the pool, the threshold, and when the ranking stays."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from stage_builders import WordReranker, hit, ids, searched, with_settings

from core.errors import ModelError
from retrievers.stages import passage, rerank

QUESTION = "where is the harbour"
HITS = [
    hit("a", "a quiet forest", 0.9),
    hit("b", "the harbour", 0.8),
    hit("c", "where the harbour is", 0.7),
    hit("d", "the sea", 0.6),
]


def ranked(index, reranker, **values):
    deadline, language = values.pop("deadline", None), values.pop("language", None)
    found = with_settings(replace(index(), reranker=reranker), **values)
    return rerank(searched(found, QUESTION, deadline=deadline, language=language), HITS)


def test_the_model_decides_and_says_its_score(index) -> None:
    after, note = ranked(index, WordReranker())
    assert ids(after) == ["c", "b", "d", "a"]
    assert [item.score for item in after] == [1.0, 0.5, 0.25, 0.0]
    assert after[0].scores == {"rerank": 1.0}
    assert note == "4 re-ranked"


def test_only_the_pool_is_read_and_the_rest_stays_behind(index) -> None:
    reranker = WordReranker()
    after, _ = ranked(index, reranker, rerank_pool=2)
    assert reranker.asked == ["a quiet forest", "the harbour"]
    assert ids(after) == ["b", "a", "c", "d"]
    assert after[1].score >= after[2].score >= after[3].score
    assert "rerank" not in after[2].scores


def test_hits_below_the_threshold_are_dropped(index) -> None:
    after, note = ranked(index, WordReranker(), rerank_threshold=0.5)
    assert ids(after) == ["c", "b"]
    assert note == "4 re-ranked, 2 below 0.5 dropped"


class Broken(WordReranker):
    def score(self, question, passages):
        raise ModelError("the model is broken")


class NotANumber(WordReranker):
    def score(self, question, passages):
        return [float("nan")] * len(passages)


@pytest.mark.parametrize(
    ("reranker", "values", "reason"),
    [
        (None, {}, "there is no re-ranking model"),
        (Broken(), {}, "the model is broken."),
        (NotANumber(), {}, "the re-ranking model gave no numbers"),
        (WordReranker(frozenset({"uk"})), {}, "the re-ranking model does not serve this language"),
        (WordReranker(), {"deadline": 0.0}, "only 0 ms were left"),
    ],
)
def test_otherwise_the_ranking_stays_and_the_note_says_why(index, reranker, values, reason) -> None:
    assert ranked(index, reranker, **values) == (HITS, f"not re-ranked: {reason}")


def test_a_deadline_far_away_and_a_language_that_is_served_do_not_matter(index) -> None:
    reranker = WordReranker(frozenset({"en"}))
    _, note = ranked(index, reranker, deadline=time.monotonic() + 3600, language="en")
    assert note == "4 re-ranked"
    assert ranked(index, reranker, language="und")[1] == "4 re-ranked"


@pytest.mark.parametrize(
    ("title", "section", "expected"),
    [
        ("", "", "text"),
        ("Guide", "", "Guide\ntext"),
        ("Guide", "Guide › Part", "Guide › Part\ntext"),
        ("Guide", "Part", "Guide › Part\ntext"),
        ("text", "", "text"),
    ],
)
def test_the_model_reads_title_and_section_too(title, section, expected) -> None:
    assert passage(hit("a", "text", title=title, section=section)) == expected
