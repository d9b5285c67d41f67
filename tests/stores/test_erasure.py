"""Erasing a document takes its text out of neighbours' context, shared tables and stored runs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from fakes import FakeEmbedder, document, short_hash, write

from core.auth import AuthContext
from core.trace import ModelCall, RunRecord, Step
from stores.erasure.redaction import ERASED, NOTICE, redacted
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import NEXT, PREVIOUS, DocumentRow
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
BOB = AuthContext(tenant="acme", user="bob")


def in_file(row: DocumentRow, file: str, context: str = "") -> DocumentRow:
    chunks = [replace(chunk, context=context) for chunk in row.chunks]
    return replace(row, file=file, chunks=chunks)


def contexts(store: Store) -> dict[str, str]:
    rows = (
        parts(store)
        .database.read()
        .execute(
            "SELECT d.document_id, c.context FROM chunks c JOIN documents d ON d.id = c.document"
        )
    )
    return {row[0]: row[1] for row in rows}


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ("An otter swims.", "The heron waits by the water.", "A swift flies."),
        ("Выдра плавает.", "Цапля ждёт у воды.", "Стриж летает."),
        ("水獭会游泳。", "苍鹭在水边等待。", "雨燕在飞。"),
    ],
)
def test_neighbours_forget_it(
    store: Store,
    collection: Collection,
    embedder: FakeEmbedder,
    before: str,
    gone: str,
    after: str,
) -> None:
    rows = [
        in_file(document(collection, "a", before), "f", f"{NEXT}{gone}"),
        in_file(document(collection, "b", gone), "f", f"{PREVIOUS}{before}\n{NEXT}{after}"),
        in_file(document(collection, "c", after), "f", f"{PREVIOUS}{gone[4:]}\n{NEXT}{before}"),
    ]
    write(store, collection, rows, embedder)
    assert store.maintenance.erase(ANN, collection, "b")
    assert contexts(store) == {"a": "", "c": f"{NEXT}{before}"}
    assert parts(store).fulltext.rows(collection.id) == 2
    assert gone not in "\n".join(parts(store).database._writer.iterdump())


def test_tidying_can_be_ended_and_done_later(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    for name in "abc":
        write(store, collection, [document(collection, name, f"marker{name}")], embedder)
    assert store.maintenance.erase(ANN, collection, "b")

    def stop(stage: str) -> None:
        raise KeyboardInterrupt

    assert store.maintenance.pending_erasure()
    with pytest.raises(KeyboardInterrupt):
        store.maintenance.tidy(stop)
    assert store.maintenance.tidy()
    assert not store.maintenance.pending_erasure()
    assert not store.maintenance.tidy()
    assert b"markerb" not in (store.folder / "catalogue.sqlite3").read_bytes()
    assert b"markera" in (store.folder / "catalogue.sqlite3").read_bytes()


def run(run_id: str, collection: str = "main") -> RunRecord:
    of_a, of_b = (short_hash("acme", collection, name, "", 0) for name in "ab")
    items = [
        {"evidence_id": of, "document_id": name, "text": f"text of {name}",
         "title": f"title of {name}", "section": "", "metadata": {"author": f"who of {name}"},
         "score": 1.0}
        for of, name in ((of_a, "a"), (of_b, "b"))
    ]  # fmt: skip
    cited = {"evidence_id": of_a, "document_id": "a", "start": 5, "end": 9, "quote": "text of a"}
    kept = {"evidence_id": of_b, "document_id": "b", "start": 5, "end": 9, "quote": "text of b"}
    result: dict[str, Any] = {
        "answer": "It says so.",
        "evidence": items,
        "claims": [{"text": "It says so.", "citations": [cited, kept]}],
        "plan": {
            "asked": [{"id": "q2", "text": "Where was Ångström born?"}],
            "slots": [{"slot": "who", "value": "Ångström", "evidence_id": of_a}],
        },
    }
    step = Step(
        node="plan",
        reason="who = Ångström",
        arguments={"slots": {"who": ["Ångström"]}, "other": "Ångströmer"},
        calls=[ModelCall(verb="grade", prompt_hash="h", reply="text of a")],
        evidence=[(of_a, 1.0)],
    )
    return RunRecord(
        run_id=run_id, tenant="acme", user="bob", collection=collection, question="Why?",
        pipeline="auto", created_at="2026", index_version=1, result=result, trail=[step],
    )  # fmt: skip


def test_stored_runs_keep_the_answer_but_not_the_text(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    rows = [document(collection, name, f"text of {name}") for name in ("a", "b")]
    write(store, collection, rows, embedder)
    other = store.intake.open_collection("acme", "other", None)
    write(store, other, [document(other, name, "x") for name in ("a", "b")], embedder)
    store.runs.save(run("r1"))
    store.runs.save(run("r2", "other"))
    assert store.maintenance.erase(ANN, collection, "a")
    kept = store.runs.load(BOB, "r1")
    assert (kept.result["answer"], kept.result["claims"][0]["text"]) == (NOTICE, "")
    first, second = kept.result["evidence"]
    assert (first["text"], first["title"], first["metadata"]) == ("", "", {})
    assert (first["score"], second["text"]) == (1.0, "text of b")
    gone, cited = kept.result["claims"][0]["citations"]
    assert (gone["quote"], gone["start"], gone["end"]) == ("", 0, 0)
    assert gone["document_id"] == first["document_id"] == ERASED
    assert cited["quote"] == "text of b"
    (step,) = kept.trail
    assert step.calls[0].reply == "" and step.evidence == [(first["evidence_id"], 1.0)]
    assert step.arguments == {"slots": {"who": ["…"]}, "other": "Ångströmer"}
    assert "Ångström" not in str(kept.result["plan"]) + step.reason
    assert store.runs.load(BOB, "r2") == run("r2", "other")  # its own document "a"


def test_a_run_that_ends_after_the_deletion_is_kept_without_the_text(
    store: Store, collection: Collection, embedder: FakeEmbedder
) -> None:
    write(store, collection, [document(collection, "b", "text of b")], embedder)
    late = run("late")
    store.runs.save(late)
    kept = store.runs.load(BOB, "late")
    assert [item["text"] for item in kept.result["evidence"]] == ["", "text of b"]
    assert late == run("late")  # its caller still gets what was found


def test_a_run_without_the_document_is_left_alone() -> None:
    record = run("r")
    result, trail = deepcopy(record.result), [step.model_dump() for step in record.trail]
    assert not redacted(result, trail, {"c"})
    assert (result, trail) == (record.result, [step.model_dump() for step in record.trail])
