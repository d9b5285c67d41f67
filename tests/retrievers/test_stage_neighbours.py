"""Widening hits with the chunks around them, under the caller's permissions."""

from __future__ import annotations

import pytest
from fakes import document, write
from stage_builders import ANN, ids, searched, with_settings

from retrievers.stages import neighbours


@pytest.fixture
def chunks(store, collection, embedder):
    rows = [
        document(collection, "a", *(f"part {n}" for n in range(5))),
        document(collection, "b", "alone", acl=["user:bob"]),
    ]
    write(store, collection, rows, embedder)
    keys = [chunk.chunk_id for chunk in rows[0].chunks]
    found = store.catalogue.evidence(ANN, collection.id, keys)
    return [found[key] for key in keys]


def scored(*pairs):
    return [item.model_copy(update={"score": score}) for item, score in pairs]


def test_neighbours_follow_their_hit_between_it_and_the_next(index, chunks) -> None:
    evidence = scored((chunks[2], 0.8), (chunks[0], 0.4))
    after, note = neighbours(searched(with_settings(index(), neighbours_best=1)), evidence)
    assert [item.text for item in after] == ["part 2", "part 1", "part 3", "part 0"]
    assert [item.score for item in after] == pytest.approx([0.8, 0.6, 0.6, 0.4])
    assert [item.scores for item in after] == [{}, {"neighbour": -1.0}, {"neighbour": 1.0}, {}]
    assert note == "2 neighbours added"


def test_what_is_there_already_is_not_added_again(index, chunks) -> None:
    evidence = scored((chunks[1], 0.9), (chunks[2], 0.8))
    after, _ = neighbours(searched(index()), evidence)
    assert [item.text for item in after] == ["part 1", "part 0", "part 2", "part 3"]


def test_the_reach_and_the_number_of_hits_are_settings(index, chunks) -> None:
    evidence = scored((chunks[2], 0.9))
    wide = with_settings(index(), neighbours_reach=2)
    assert len(neighbours(searched(wide), evidence)[0]) == 5
    assert neighbours(searched(index()), [])[0] == []


def test_a_caller_who_may_not_see_the_document_gets_no_neighbours(index, chunks) -> None:
    confined = ANN.model_copy(update={"allowed_sources": ("b",)})
    evidence = scored((chunks[2], 0.9))
    assert ids(neighbours(searched(index(), auth=confined), evidence)[0]) == ids(evidence)
