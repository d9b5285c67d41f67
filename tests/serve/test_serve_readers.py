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


def test_the_readers_of_a_collection_are_set_at_once(served: Served) -> None:
    for name in ("one.md", "two.md"):
        sent = upload(
            served, name, f"# {name}\n\nThe zqquay of {name} is long.".encode(), collection="quays"
        )
        assert finished(served, sent.json())["state"] == "done"
    hidden = upload(
        served, "deep.md", b"# Deep\n\nA zqquay below.", collection="quays", role="board"
    )
    assert finished(served, hidden.json())["state"] == "done"
    at, search = {"collection": "quays"}, {"query": "zqquay", "collection": "quays"}
    place = "/api/v1/collections"
    with (
        served.client("writer") as writer,
        served.client("editor") as editor,
        served.client("other tenant") as stranger,
    ):
        for body in ({}, {"acl": ["a b"]}, {"acl": ["a"], "everyone": True}):
            assert writer.put(place, params=at, json=body).status_code == 400
        absent = writer.put(place, params={"collection": "no"}, json={"acl": ["a"]})
        other = stranger.put(place, params=at, json={"everyone": True})
        assert absent.status_code == 400 and other.status_code in (400, 403)
        done = writer.put(place, params=at, json={"acl": ["writer"]}).json()
        assert (done["acl"], done["documents"], done["collection"]) == (["writer"], 2, "quays")
        assert editor.post("/api/v1/search", json=search).status_code == 400
        assert len(writer.post("/api/v1/search", json=search).json()["results"]) == 2
        writer.put(place, params=at, json={"everyone": True})
        assert len(editor.post("/api/v1/search", json=search).json()["results"]) == 2  # not deep.md


def test_an_admin_sets_who_reads_what_comes_later(served: Served) -> None:
    sent = upload(served, "pier.md", b"# Pier\n\nThe zqpier is old.", collection="piers")
    assert finished(served, sent.json())["state"] == "done"
    place, at = "/api/v1/collections", {"collection": "piers", "later": "true"}
    search = {"query": "zqpier", "collection": "piers"}
    with served.client("writer") as writer, served.client("admin") as admin:
        assert writer.put(place, params=at, json={"acl": ["editor"]}).status_code == 403
        done = admin.put(place, params=at, json={"acl": ["editor"]}).json()
        assert done == {"collection": "piers", "default": ["editor"], "before": []}
    later = upload(served, "new.md", b"# New\n\nThe zqpier is rebuilt.", collection="piers")
    job = finished(served, later.json())
    assert job["state"] == "done" and any("none of its readers" in note for note in job["notes"])
    found = {}
    for kind in ("writer", "editor"):
        with served.client(kind) as client:
            results = client.post("/api/v1/search", json=search).json()["results"]
            found[kind] = {one["source"] for one in results}
    assert found == {"writer": {"pier.md"}, "editor": {"pier.md", "new.md"}}
