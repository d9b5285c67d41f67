"""Uploads: ingested in the background, under the caller's tenant, whatever they are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import pdf
from serving import Served, error_of, eventually
from uploading import finished, upload, uploaded

from core.profile import Profile


def test_an_upload_can_be_asked_about(served: Served, uploads: Path) -> None:
    response = upload(served, "newt.md", b"# Newts\n\nA newt is 12 cm long.\n")
    assert response.status_code == 202
    job = finished(served, response.json())
    assert (job["state"], job["documents"], job["error"]) == ("done", 1, "")
    eventually(lambda: list(uploads.iterdir()) == [])  # a moment after its job is done
    body = {"question": "How long is a newt?", "collection": "uploaded"}
    with served.client("reader") as client:
        assert "12 cm" in client.post("/api/v1/chat", json=body).json()["answer"]
        assert client.get(f"/api/v1/jobs/{job['id']}").status_code == 404  # another's
    with served.client("other tenant") as client:
        assert client.post("/api/v1/chat", json=body).status_code == 400


def test_an_upload_replaces_the_document_of_its_name(served: Served) -> None:
    for text in (b"An eft is red.", b"An eft is green."):
        sent = upload(served, "eft.txt", text, collection="efts").json()
        assert finished(served, sent)["state"] == "done"
    with served.client() as client:
        body = {"query": "eft", "collection": "efts"}
        texts = [one["text"] for one in client.post("/api/v1/search", json=body).json()["results"]]
        assert texts == ["An eft is green."]


def test_an_upload_for_a_role_is_read_by_that_role(served: Served) -> None:
    sent = upload(served, "plan.txt", b"The vault code is kept.", collection="vault", role="editor")
    assert finished(served, sent.json())["state"] == "done"
    found = {}
    for kind in ("reader", "editor"):
        with served.client(kind) as client:
            body = {"query": "vault code", "collection": "vault"}
            found[kind] = client.post("/api/v1/search", json=body)
    assert found["reader"].status_code == 400  # as if there were no such collection
    assert len(found["editor"].json()["results"]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd.txt",
        "/etc/passwd.txt",
        "..\\up.txt",
        "a//b.txt",
        "a/../b.txt",
        "a/.git/b.txt",
        "a/b.txt/",
        "C:evil.txt",
        ".hidden.txt",
        "nul\x00.txt",
        "new\nline.txt",
        " space.txt",
        "й" * 120 + ".txt",
        "..",
        "",
    ],
)
def test_a_name_reaches_no_other_file(served: Served, uploads: Path, name: str) -> None:
    response = upload(served, name, b"text")
    assert response.status_code in (400, 422)
    assert error_of(response)["rule"]
    assert not uploads.exists() or list(uploads.iterdir()) == []


def test_what_cannot_be_read_is_said(served: Served) -> None:
    for name, content in (("locked.pdf", pdf("secret", password="x")), ("broken.docx", b"PK\x03")):
        job = finished(served, upload(served, name, content, collection="broken").json())
        assert job["state"] == "failed"
        assert "could not be read" in job["error"]
    response = upload(served, "sheet.numbers", b"x")
    assert (response.status_code, error_of(response)["code"]) == (422, "bad_document")
    with served.client("writer") as client:
        names = [one["name"] for one in client.get("/api/v1/collections").json()["collections"]]
    assert "broken" not in names


def test_what_is_not_taken_is_said(served: Served) -> None:
    lines = [{"_id": "n1", "text": "A gull flies."}, {"_id": "n2", "text": ""}]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    job = finished(served, upload(served, "some.jsonl", content, collection="gulls").json())
    assert (job["state"], job["documents"]) == ("done", 1)
    (note,) = job["notes"]
    assert note.startswith("1 of its documents were not taken; some.jsonl")
    profile = {"name": "wordy", "settings": {"min_text_words": 30}}
    writer = served.services.session.store.intake
    wordy = writer.open_collection("acme", "wordy", Profile.model_validate(profile))
    job = finished(served, upload(served, "few.txt", b"Few words.", collection="wordy").json())
    assert (job["state"], job["documents"]) == ("failed", 0)
    assert "left out" in job["error"]
    assert wordy.name not in [
        one.name for one in served.services.session.store.catalogue.collections()
    ]


def test_documents_are_found_and_sorted_under_the_callers_rights(served: Served) -> None:
    texts = {"b.md": "# Avocet\n\nIt wades.", "a.md": "# Bittern\n\nIt booms."}
    for name, text in texts.items():
        uploaded(served, name, text, collection="marsh")
    uploaded(served, "c.md", "# Avocet in secret\n\nIt hides.", collection="marsh", role=["ghost"])

    def listed(**query: object) -> tuple[list[str], int | None]:
        found = {"collection": "marsh", **query}
        with served.client("reader") as client:
            body = client.get("/api/v1/documents", params=found).json()
        return [one["title"] for one in body["documents"]], body.get("total")

    assert listed(sort="title") == (["Avocet", "Bittern"], 2)
    assert listed(sort="title", descending="true", limit=1) == (["Bittern"], 2)
    assert listed(sort="source", offset=1) == (["Avocet"], 2)
    assert listed(q="AVOCET") == (["Avocet"], 1)  # the secret one is not counted
    assert listed(q="nothing") == ([], 0)
    with served.client("reader") as client:
        wrong = client.get("/api/v1/documents", params={"collection": "marsh", "sort": "acl"})
    assert wrong.status_code == 422
