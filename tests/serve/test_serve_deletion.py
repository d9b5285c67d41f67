"""A document is read passage by passage, and once deleted it is nowhere any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scanning import encoded, holding
from serving import Served, error_of, eventually
from uploading import uploaded

from stores.erasure.redaction import NOTICE

LONG = "# Voles\n\n" + "\n\n".join(
    f"## Part {number}\n\nVole number {number} digs a tunnel of {number} metres. "
    + "It rests. " * 150
    for number in range(12)
)


def passages(served: Served, document_id: str, kind: str = "reader", **more: Any) -> Any:
    params = {"collection": "burrow", "document_id": document_id} | more
    with served.client(kind) as client:
        return client.get("/api/v1/documents/passages", params=params)


def delete(served: Served, document_id: str, kind: str = "writer", **more: Any) -> Any:
    params = {"collection": "burrow", "document_id": document_id} | more
    with served.client(kind) as client:
        return client.delete("/api/v1/documents", params=params)


def test_the_passages_around_one_come_in_reading_order(served: Served) -> None:
    uploaded(served, "vole.md", LONG, collection="burrow")
    found = passages(served, "vole.md", around=3, before=1, after=2).json()
    assert [one["ordinal"] for one in found["passages"]] == [2, 3, 4, 5]
    assert set(found["passages"][0]) == {"chunk_id", "ordinal", "kind", "section", "page", "text"}
    document = found["document"]
    assert (document["document_id"], document["title"]) == ("vole.md", "Voles")
    assert document["chunks"] > 6 and document["format"] and document["language"] == "en"
    at_the_end = passages(served, "vole.md", around=document["chunks"] - 1, after=200).json()
    assert at_the_end["passages"][-1]["ordinal"] == document["chunks"] - 1
    for wrong in ({"around": -1}, {"before": 201}, {"around": "x"}, {"around": 2**63}):
        assert passages(served, "vole.md", **wrong).status_code == 422


@pytest.mark.parametrize("kind", ["reader", "other tenant"])
def test_what_a_caller_may_not_see_is_as_absent_as_nothing(served: Served, kind: str) -> None:
    uploaded(served, "plan.txt", "The gate opens at nine.", collection="burrow", role="editor")
    hidden, absent = (passages(served, one, kind) for one in ("plan.txt", "absent.txt"))
    assert hidden.status_code == absent.status_code == 404
    for key in ("code", "rule", "hint"):
        assert error_of(hidden)[key] == error_of(absent)[key]
    assert passages(served, "plan.txt", "editor").status_code == 200
    assert delete(served, "plan.txt").status_code == 404  # a writer without the role
    assert delete(served, "plan.txt", "editor").status_code == 403
    no_such = passages(served, "plan.txt", "editor", collection="nowhere")
    assert error_of(no_such)["code"] == "not_found"


def test_a_deleted_document_is_nowhere(served: Served) -> None:
    secret = "zyxmarker9417"
    text = f"A stoat is 27 cm long.\n\nIts keeper wrote {secret} on the burrow's door."
    uploaded(served, "stoat.txt", text, collection="burrow")
    uploaded(served, "fox.txt", "A fox is 70 cm long.", collection="burrow")
    question = {"question": "How long is a stoat?", "collection": "burrow"}
    query = {"query": "stoat", "collection": "burrow"}
    with served.client() as client:
        run = client.post("/api/v1/chat", json=question).json()
        assert "27 cm" in run["answer"] and secret in str(run["evidence"])
        folder = served.services.session.store.folder
        assert found_in(folder, {secret.encode()})
        assert delete(served, "stoat.txt").status_code == 204
        # From here on nothing of it comes back.
        assert passages(served, "stoat.txt").status_code == 404
        assert secret not in client.post("/api/v1/search", json=query).text
        again = client.post("/api/v1/chat", json=question).json()
        assert "27 cm" not in again["answer"]
        kept = client.get(f"/api/v1/runs/{run['run_id']}")
        assert secret not in kept.text
        stored = kept.json()["result"]
        assert stored["answer"] == NOTICE and "27 cm" not in kept.text
        assert [one["evidence_id"] for one in stored["evidence"]] == [
            one["evidence_id"] for one in run["evidence"]
        ]
        (claim,) = stored["claims"]
        assert (claim["text"], claim["citations"][0]["quote"]) == ("", "")
        assert any("fox" in one["text"] for one in stored["evidence"])
    assert delete(served, "stoat.txt").status_code == 404
    with served.client("admin") as client:
        noted = client.get("/api/v1/audit", params={"kind": "deletion"}).json()["events"]
    named = served.services.audit.log.document("stoat.txt")
    assert noted[0]["facts"] == {"collection": "burrow", **named}
    eventually(lambda: not found_in(folder, {secret.encode()}))


def test_no_file_names_a_document_that_was_deleted(served: Served) -> None:
    name, other = "Zyxtern-91.txt", "Зюкстерн-91.txt"
    for one in (name, other):
        uploaded(served, one, f"A tern is {len(one)} cm long.", collection="burrow")
        assert passages(served, one).status_code == 200
    with served.client("admin") as client:
        question = {"question": "How long is a tern?", "collection": "burrow"}
        assert client.post("/api/v1/chat", json=question).status_code == 200
    folder = served.services.session.store.folder
    needles = {one for each in ("Zyxtern", "Зюкстерн") for one in encoded(each)}
    assert found_in(folder, needles)
    assert delete(served, name).status_code == delete(served, other).status_code == 204
    eventually(lambda: not found_in(folder, needles))
    assert served.services.audit.log.verify().problem == ""
    with served.client("admin") as client:
        params = {"document": name, "kind": "deletion"}
        assert len(client.get("/api/v1/audit", params=params).json()["events"]) == 1


def found_in(folder: Path, needles: set[bytes]) -> list[object]:
    """Return where needles are; files that are replaced meanwhile are looked at again."""
    while True:
        try:
            return [one for one in holding(folder, needles) if not one[0].startswith("models")]
        except FileNotFoundError:
            continue


def test_the_last_document_takes_its_collection_with_it(served: Served) -> None:
    uploaded(served, "wren.txt", "A wren weighs 9 grams.", collection="nest")
    assert delete(served, "wren.txt", collection="nest").status_code == 204
    catalogue = served.services.session.store.catalogue
    eventually(lambda: "nest" not in [one.name for one in catalogue.collections("acme")])
    uploaded(served, "wren.txt", "A wren weighs 9 grams.", collection="nest")  # and may come back
    with served.client() as client:
        names = [one["name"] for one in client.get("/api/v1/collections").json()["collections"]]
    assert "nest" in names
    with served.client("writer") as client:
        jobs = client.get("/api/v1/jobs").json()["jobs"]
    kinds = [job["kind"] for job in jobs if job["collection"] == "nest"]
    assert kinds == ["upload", "deletion", "upload"]
