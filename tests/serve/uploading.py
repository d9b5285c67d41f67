"""Send a document to the server of the tests and wait until it is ingested."""

from __future__ import annotations

from typing import Any

from serving import Served, eventually

ENDED = ("done", "failed", "cancelled")


def upload(served: Served, name: str, content: bytes, *, kind: str = "writer", **more: Any) -> Any:
    params = {"collection": "uploaded", "name": name} | more
    with served.client(kind) as client:
        return client.post("/api/v1/documents", params=params, content=content)


def finished(served: Served, job: dict[str, Any], kind: str = "writer") -> dict[str, Any]:
    found: dict[str, Any] = {}

    def ended() -> bool:
        with served.client(kind) as client:
            found.update(client.get(f"/api/v1/jobs/{job['id']}").json())
        return found["state"] in ENDED

    eventually(ended)
    return found


def uploaded(served: Served, name: str, text: str, *, kind: str = "writer", **more: Any) -> None:
    """Upload a text and see it ingested."""
    job = finished(served, upload(served, name, text.encode(), kind=kind, **more).json(), kind)
    assert job["state"] == "done", job
