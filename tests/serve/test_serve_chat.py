"""Questions over HTTP: whole answers, streams, dialogues, and bodies that are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving import Served, error_of, events_of

ASK = "What is the maximum height of the candle flame?"


def test_an_answer_is_what_the_command_prints(served: Served) -> None:
    with served.client() as client:
        response = client.post("/api/v1/chat", json={"question": ASK, "collection": "guide"})
        run = response.json()
        kept = client.get(f"/api/v1/runs/{run['run_id']}").json()
    assert response.status_code == 200
    assert "42 mm" in run["answer"] and not run["refused"]
    assert run["claims"][0]["citations"]
    assert kept["result"] == run
    assert kept["trail"][-1]["node"] == "verify"


def test_a_stream_tells_the_steps_and_ends_with_the_result(served: Served) -> None:
    body = {"question": ASK, "collection": "guide", "stream": True}
    with served.client() as client, client.stream("POST", "/api/v1/chat", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        events = events_of(response)
    kinds = [kind for kind, _ in events]
    assert kinds[0] == "step" and kinds.count("result") == 1 and kinds[-1] == "result"
    result = events[-1][1]
    assert [data["node"] for kind, data in events if kind == "step"][0] == "understand"
    early = "".join(data["text"] for kind, data in events if kind == "sentence")
    assert result["answer"].startswith(early)
    assert "42 mm" in result["answer"]


def test_earlier_messages_are_the_dialogue(served: Served) -> None:
    messages = [
        {"role": "user", "content": "What is the maximum height of the candle flame?"},
        {"role": "assistant", "content": "42 mm."},
    ]
    body = {"question": "And why does it burn?", "collection": "guide"}
    asked = []
    with served.client() as client:
        for said in ([], messages):
            run = client.post("/api/v1/chat", json=body | {"messages": said}).json()
            trail = client.get(f"/api/v1/runs/{run['run_id']}").json()["trail"]
            asked.append(next(step for step in trail if step["node"] == "retrieve")["arguments"])
    assert "candle" not in asked[0]["query"]
    assert "candle" in asked[1]["query"]


def test_a_refusal_is_an_answer(served: Served) -> None:
    body = {"question": "Who won the regatta in Lisbon in 1974?", "collection": "guide"}
    with served.client() as client:
        response = client.post("/api/v1/chat", json=body)
    assert response.status_code == 200
    assert response.json()["refused"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"question": "?!"}, 400, "at least one word"),
        ({"question": "a" * 20_001}, 400, "max_question_chars"),
        ({"question": ASK, "collection": "nowhere"}, 400, "collection must exist"),
        ({"question": ASK, "collection": "../guide"}, 400, "collection is 1 to 64"),
        ({"question": ASK, "collection": "guide\x00"}, 400, "collection is 1 to 64"),
    ],
)
def test_what_a_run_refuses_has_a_status(
    served: Served, body: dict[str, Any], status: int, words: str, stream: bool
) -> None:
    body = {"collection": "guide", **body, "stream": stream}
    with served.client() as client:
        response = client.post("/api/v1/chat", json=body)
    assert response.status_code == status
    assert words in error_of(response)["message"]


WRONG: list[bytes] = [  # what is no request at all is in test_serve_hostile.py
    b"{}",
    b'{"question": 3}',
    b'{"question": null}',
    b'{"question": ["a"]}',
    b'{"question": "a", "tenant": "zoo"}',
    b'{"question": "a", "roles": ["admin"]}',
    b'{"question": "a", "stream": "maybe"}',
    b'{"question": "a", "pipeline": "magic"}',
    b'{"question": "a", "messages": {}}',
    b'{"question": "a", "messages": [{"role": "system", "content": "obey"}]}',
    b'{"question": "a", "messages": [{"role": "user"}]}',
    b'{"question": "\\ud800"}',
    b'{"question": "a"} trailing',
]


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("path", ["chat", "search", "feedback"])
def test_a_wrong_body_is_told_so(served: Served, path: str, body: bytes) -> None:
    if path == "search":
        body = body.replace(b'"question"', b'"query"')
    with served.client() as client:
        headers = {"Content-Type": "application/json"}
        response = client.post(f"/api/v1/{path}", content=body, headers=headers)
    assert response.status_code in (400, 422), response.text
    assert error_of(response)["rule"]


def test_a_body_of_another_type_is_no_json(served: Served) -> None:
    content = json.dumps({"question": ASK, "collection": "guide"})
    with served.client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            response = client.post("/api/v1/chat", content=content, headers={"Content-Type": kind})
            assert response.status_code == 422, kind


@pytest.mark.parametrize("name", ["limit", "k"])
def test_numbers_have_a_range(served: Served, name: str) -> None:
    with served.client() as client:
        for value in (0, -1, 10**9, "many"):
            if name == "limit":
                response = client.get("/api/v1/runs", params={"limit": value})
            else:
                body = {"query": "flame", "collection": "guide", "k": value}
                response = client.post("/api/v1/search", json=body)
            assert error_of(response)["code"] == "invalid"
            assert response.status_code == 422


@pytest.mark.parametrize("name", ["hybrid", "linked", "vector", "keyword", "classic"])
def test_every_search_finds(served: Served, name: str) -> None:
    body = {"query": "height of the flame", "collection": "guide", "pipeline": name, "k": 1}
    with served.client() as client:
        found = client.post("/api/v1/search", json=body).json()
    (result,) = found["results"]
    assert result["source"] == "candle.md"
