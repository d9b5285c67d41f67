"""What a question is about, over HTTP: several collections, filters, and keys that are confined."""

from __future__ import annotations

import time
from typing import Any

import httpx
import jwt
import pytest
from serving import Served, error_of
from uploading import upload, uploaded

from core.settings import load_settings
from serve.access.auth import Tokens
from serve.errors import NotAuthenticated
from stores.store import parts

CHAT, SEARCH, KEYS = "/api/v1/chat", "/api/v1/search", "/api/v1/keys"
BUDGET = "What is the secret budget of the museum?"


def found(served: Served, kind: str, **body: Any) -> set[tuple[str, str]]:
    with served.client(kind) as client:
        response = client.post(SEARCH, json={"query": "candle budget чайник", "k": 20, **body})
    assert response.status_code == 200, response.text
    return {(one["collection"], one["source"]) for one in response.json()["results"]}


@pytest.mark.parametrize("both", ["guide,closed", "closed, guide", ["guide", "closed"]])
def test_one_question_is_asked_of_several_collections(served: Served, both: object) -> None:
    assert found(served, "editor", collection=both) == {
        ("guide", "candle.md"),
        ("guide", "чайник.txt"),
        ("closed", "budget.md"),
    }
    with served.client("editor") as client:
        run = client.post(CHAT, json={"question": BUDGET, "collection": both}).json()
        cited = [one for claim in run["claims"] for one in claim["citations"]]
        assert "900 euros" in run["answer"]
        assert {one["collection"] for one in cited} == {"closed"}
        again = client.post(CHAT, json={"question": BUDGET, "collection": both}).json()
        assert again["run_id"] == run["run_id"]  # remembered under the rights to all of them
        begun = client.post("/api/v1/conversations", json={"collection": both}).json()
        said = client.post(
            CHAT, json={"question": BUDGET, "conversation_id": begun["conversation_id"]}
        ).json()
        assert "900 euros" in said["answer"]


def test_a_hidden_collection_among_several_is_as_one_that_is_not_there(served: Served) -> None:
    texts = []
    with served.client("reader") as client:
        for name in ("closed", "nowhere"):
            for path, asked in ((SEARCH, "query"), (CHAT, "question")):
                body = {asked: BUDGET, "collection": ["guide", name]}
                response = client.post(path, json=body)
                assert response.status_code == 400
                told = error_of(response)
                texts.append(str({k: v for k, v in told.items() if k != "id"}))
    assert texts[0].replace("closed", "nowhere") == texts[2]
    assert texts[1].replace("closed", "nowhere") == texts[3]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["type=md"], {"candle.md"}),
        ({"type": "md"}, {"candle.md"}),
        (["language=ru"], {"чайник.txt"}),
        ({"file": "*.txt", "language": "ru"}, {"чайник.txt"}),
        (["file!=*.md"], {"чайник.txt"}),
        (["type=pdf"], set()),
        ([], {"candle.md", "чайник.txt"}),
    ],
)
def test_filters_narrow_a_search(served: Served, where: object, expected: set[str]) -> None:
    assert found(served, "reader", collection="guide", where=where) == {
        ("", one) for one in expected
    }


def test_a_filtered_question_is_another_one(served: Served) -> None:
    asked = {"question": "What is the maximum height of the candle flame?", "collection": "guide"}
    with served.client("reader") as client:
        assert "42 mm" in client.post(CHAT, json=asked).json()["answer"]
        assert client.post(CHAT, json={**asked, "where": ["type=txt"]}).json()["refused"]
        assert (
            "42 mm" in client.post(CHAT, json={**asked, "where": {"type": "md"}}).json()["answer"]
        )


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"where": ["colour=red"]}, 400, "no document here has the field"),
        ({"where": {"colour": "red"}}, 400, "colour"),
        ({"where": ["nothing"]}, 400, "a filter names a field and a value"),
        ({"where": ["date>soon"]}, 400, "compares numbers"),
        ({"where": "type=md"}, 422, "where"),
        ({"where": [1]}, 422, "where"),
        ({"where": ["a=1"] * 17}, 422, "where"),
        ({"collection": []}, 422, "collection"),
        ({"collection": ["guide", 7]}, 422, "collection"),
        ({"collection": ["guide", ""]}, 400, "a collection is 1 to 64 letters"),
        ({"collection": [f"c{n}" for n in range(17)]}, 400, "at most 16 collections"),
    ],
)
def test_bad_scope_is_refused_in_a_line(
    served: Served, body: dict[str, Any], status: int, told: str
) -> None:
    with served.client("reader") as client:
        for path, asked in ((SEARCH, "query"), (CHAT, "question")):
            response = client.post(path, json={asked: "flame", "collection": "guide", **body})
            assert response.status_code == status, response.text
            assert told in str(error_of(response))


def test_a_key_is_confined_to_sources_and_versions(served: Served) -> None:
    with served.client("admin") as client:
        made = client.post(KEYS, json={"roles": ["admin"], "sources": ["*.md"]}).json()
        assert (made["sources"], made["version_policy"]) == (["*.md"], "any")
        events = client.get("/api/v1/audit").json()["events"]
    noted = [one["facts"] for one in events if one["facts"].get("key") == made["id"]]
    assert noted[0]["sources"] == ["*.md"]
    bearer = {"Authorization": f"Bearer {made['key']}"}
    with httpx.Client(base_url=served.url, headers=bearer, verify=False) as client:
        body = {"query": "candle чайник", "collection": "guide", "k": 20}
        results = client.post(SEARCH, json=body).json()["results"]
        assert {one["source"] for one in results} == {"candle.md"}
        kettle = client.post(CHAT, json={"question": "Чайник?", "collection": "guide"}).json()
        assert "чайник.txt" not in str(kettle["evidence"])
        listed = client.get("/api/v1/documents", params={"collection": "guide"}).json()
        assert [one["source"] for one in listed["documents"]] == ["candle.md"]
        # Who is confined makes no key that sees more.
        assert client.post(KEYS, json={}).json()["sources"] == ["*.md"]
        for wider in (["*"], ["*.md", "*.txt"]):
            assert client.post(KEYS, json={"sources": wider}).status_code == 403
        newest = client.post(KEYS, json={"sources": [], "version_policy": "latest"}).json()
        assert (newest["sources"], newest["version_policy"]) == ([], "latest")
    with served.client("admin") as client:
        for body in ({"sources": [""]}, {"sources": ["x" * 1001]}):
            assert client.post(KEYS, json=body).status_code == 400
        for body in ({"sources": "*"}, {"version_policy": ""}, {"version_policy": "v" * 65}):
            assert client.post(KEYS, json=body).status_code == 422


def test_a_scope_that_was_changed_spoils_the_key(served: Served) -> None:
    text, key = served.services.keys.create("acme", sources=["*.md"], version_policy="2")
    database = parts(served.services.session.store).database
    assert served.services.keys.verified(text) == key
    change = "UPDATE api_keys SET scope = ? WHERE id = ?"
    for changed in (None, '{"allowed_sources": ["*"], "version_policy": "2"}'):
        with database.write() as connection:
            connection.execute(change, [changed, key.id])
        assert served.services.keys.verified(text) is None
    with database.write() as connection:
        connection.execute("DELETE FROM api_keys WHERE id = ?", [key.id])


def claims(**more: Any) -> str:
    held = {"sub": "ann", "tenant": "acme", "aud": "carrel", "exp": int(time.time()) + 300}
    return jwt.encode(held | more, "k" * 32, "HS256")


def test_a_token_confines_its_bearer() -> None:
    tokens = Tokens(load_settings({"jwt_key": "k" * 32, "jwt_audience": "carrel"})[0])
    auth = tokens.verified(claims(allowed_sources=["docs/*"], version_policy="latest"))
    assert (auth.allowed_sources, auth.version_policy) == (("docs/*",), "latest")
    assert tokens.verified(claims(allowed_sources=[])).allowed_sources == ()
    assert tokens.verified(claims()).allowed_sources is None
    for bad in (
        {"allowed_sources": "*"},
        {"allowed_sources": [1]},
        {"allowed_sources": [""]},
        {"version_policy": 2},
        {"version_policy": ""},
        {"version_policy": None},
    ):
        with pytest.raises(NotAuthenticated):
            tokens.verified(claims(**bad))


def test_an_upload_may_be_for_one_person(served: Served) -> None:
    uploaded(served, "note.md", "# Note\n\nFor Ann.\n", collection="notes", role="user:ann")
    with served.client("writer") as client:
        missing = client.post(SEARCH, json={"query": "note", "collection": "notes"})
        assert missing.status_code == 400
    assert upload(served, "note.md", b"x", collection="notes", role="group:x").status_code == 400
    assert found(served, "reader", query="note", collection="notes") == {("", "note.md")}
