"""Erasing a document takes its text out of context, shared tables, stored runs and counts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import behind
import pytest
from behind import indexed
from builders import run_record
from fakes import Shelf, document, short_hash, write

from core.auth import AuthContext
from core.trace import ModelCall, RunRecord, Step
from stores.erasure.redaction import ERASED, NOTICE, redacted
from stores.sqlite.rows import NEXT, PREVIOUS, DocumentRow
from stores.store import Store, parts

ANN = AuthContext(tenant="acme", user="ann")
BOB = AuthContext(tenant="acme", user="bob")


def in_file(row: DocumentRow, file: str, context: str = "") -> DocumentRow:
    chunks = [replace(chunk, context=context) for chunk in row.chunks]
    return replace(row, file=file, chunks=chunks)


def contexts(store: Store) -> dict[str, str]:
    joined = "chunks c JOIN documents d ON d.id = c.document"
    return dict(behind.rows(store, f"SELECT d.document_id, c.context FROM {joined}"))


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ("An otter swims.", "The heron waits by the water.", "A swift flies."),
        ("Выдра плавает.", "Цапля ждёт у воды.", "Стриж летает."),
        ("水獭会游泳。", "苍鹭在水边等待。", "雨燕在飞。"),
    ],
)
def test_neighbours_forget_it(shelf: Shelf, before: str, gone: str, after: str) -> None:
    rows = [
        in_file(shelf.row("a", before), "f", f"{NEXT}{gone}"),
        in_file(shelf.row("b", gone), "f", f"{PREVIOUS}{before}\n{NEXT}{after}"),
        in_file(shelf.row("c", after), "f", f"{PREVIOUS}{gone[4:]}\n{NEXT}{before}"),
    ]
    shelf.write(*rows)
    assert shelf.maintenance.erase(ANN, shelf.collection, "b")
    assert contexts(shelf.store) == {"a": "", "c": f"{NEXT}{before}"}
    assert indexed(shelf.store, shelf.id) == 2
    assert gone not in "\n".join(parts(shelf.store).database._writer.iterdump())


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
    return run_record(run_id, user="bob", collection=collection, result=result, trail=[step])


def test_stored_runs_keep_the_answer_but_not_the_text(shelf: Shelf) -> None:
    shelf.put({name: f"text of {name}" for name in ("a", "b")})
    other = shelf.intake.open_collection("acme", "other", None)
    write(shelf.store, other, [document(other, name, "x") for name in ("a", "b")], shelf.embedder)
    shelf.runs.save(run("r1"))
    shelf.runs.save(run("r2", "other"))
    assert shelf.maintenance.erase(ANN, shelf.collection, "a")
    kept = shelf.runs.load(BOB, "r1")
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
    assert shelf.runs.load(BOB, "r2") == run("r2", "other")  # its own document "a"


def test_a_run_that_ends_after_the_deletion_is_kept_without_the_text(shelf: Shelf) -> None:
    shelf.write(shelf.row("b", "text of b"))
    late = run("late")
    shelf.runs.save(late)
    kept = shelf.runs.load(BOB, "late")
    assert [item["text"] for item in kept.result["evidence"]] == ["", "text of b"]
    assert late == run("late")  # its caller still gets what was found


def test_a_run_without_the_document_is_left_alone() -> None:
    record = run("r")
    result, trail = deepcopy(record.result), [step.model_dump() for step in record.trail]
    assert not redacted(result, trail, {"c"})
    assert (result, trail) == (record.result, [step.model_dump() for step in record.trail])


REFUSALS = {
    "en": (
        "Stopped because: no passage is relevant enough.",
        "It stopped because of a heron in the passage. 5 herons: 1 is relevant evidence.",
    ),
    "ru": (
        "Причина остановки: нет достаточно близких фрагментов.",
        "Цапля из близких мест. Причина одна. Достаточно фрагментов и остановки.",
    ),
    "uk": (
        "Причина зупинки: немає достатньо близьких фрагментів.",
        "Чапля з близьких місць. Причина одна. Достатньо фрагментів і зупинки.",
    ),
    "zh": ("停止原因:没有足够相关的段落。", "苍鹭停止了。段落的原因。没有鱼。足够多。相关。"),
}


@pytest.mark.parametrize("language", REFUSALS)
def test_what_carrel_itself_says_is_no_text_of_a_document(language: str) -> None:
    refusal, text = REFUSALS[language]
    item = {"evidence_id": "c1", "document_id": "a", "text": text, "language": language}
    reason = "no_relevant_evidence: 1 of 5 is from it, because of the"
    trail = [{"node": "stop_condition", "reason": f"{reason} heron"}]
    run = {"answer": refusal, "evidence": [item]}
    assert redacted(run, trail, {"a"})
    assert run["answer"] == refusal
    assert trail[0]["reason"] == f"{reason} {'…' if language == 'en' else 'heron'}"


def result() -> dict[str, Any]:
    record = {"evidence_id": "c1", "document_id": "a", "kind": "record", "text": "name: Oak"}
    count = {
        "evidence_id": "records-1",
        "document_id": "records",
        "kind": "records",
        "title": "records",
        "text": "1 record: Oak",
        "metadata": {"held": ["c1"]},
    }
    cited = {"evidence_id": "records-1", "document_id": "records", "quote": "1 record: Oak"}
    claim = {"text": "1 record: Oak", "citations": [cited]}
    return {"evidence": [count, record], "claims": [claim]}


@pytest.mark.parametrize(("deleted", "goes"), [("a", True), ("b", False)])
def test_a_count_goes_with_what_it_lists(deleted: str, goes: bool) -> None:
    run = result()
    hidden = redacted(run, [], {deleted})
    assert (hidden is not None) is goes
    assert ("Oak" not in str(run)) is goes
