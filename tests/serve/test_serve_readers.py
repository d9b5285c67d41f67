"""Who may read a document is replaced over HTTP, by writers who may see it."""

from __future__ import annotations

from serving import Served, error_of
from uploading import finished, upload


def test_over_http_writers_change_what_they_may_see(served: Served) -> None:
    sent = upload(served, "plan.md", b"# Plan\n\nThe zqplan is kept.", collection="plans")
    assert finished(served, sent.json())["state"] == "done"
    hidden = upload(served, "secret.md", b"# S\n\nHidden.", collection="plans", role="nobody")
    assert finished(served, hidden.json())["state"] == "done"
    at = {"collection": "plans", "document_id": "plan.md"}
    search = {"query": "zqplan", "collection": "plans"}
    with served.client("writer") as writer, served.client("editor") as editor:
        for body in ({}, {"acl": []}, {"acl": ["a b"]}, {"acl": ["a"], "everyone": True}):
            assert writer.put("/api/v1/documents", params=at, json=body).status_code == 400
        body = {"acl": ["writer"]}
        absent = writer.put("/api/v1/documents", params=at | {"document_id": "no.md"}, json=body)
        unseen = writer.put(
            "/api/v1/documents", params=at | {"document_id": "secret.md"}, json=body
        )
        assert absent.status_code == unseen.status_code == 404
        assert error_of(absent)["rule"] == error_of(unseen)["rule"]
        assert editor.post("/api/v1/search", json=search).json()["results"]
        told = writer.put("/api/v1/documents", params=at, json=body).json()
        assert told == {
            **{"source": "plan.md", "collection": "plans", "acl": ["writer"], "before": []},
            **{"documents": 1, "chunks": 1},
        }
        assert writer.post("/api/v1/search", json=search).json()["results"]
        assert editor.post("/api/v1/search", json=search).status_code == 400
        assert (
            writer.put("/api/v1/documents", params=at, json={"everyone": True}).json()["acl"] == []
        )
        assert editor.post("/api/v1/search", json=search).json()["results"]
