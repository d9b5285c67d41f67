"""Limits of callers: questions, requests, tokens and wrong keys; each counted for whom it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from redis_servers import MISSING, REDIS, RunningRedis
from serving import SECONDS, error_of, running

from app.session import Session
from core.auth import AuthContext
from core.settings import load_settings
from core.trace import ModelCall, Step
from serve.access.limits import ASKING, CallerLimits, RateLimiter
from serve.app import make_api
from serve.errors import LimitExceeded
from serve.protocols import langserve as agent
from serve.runs.runner import SessionRunner
from serve.services import AppState, make_app_state
from stores.accounts.keys import Keys, Spending
from stores.store import parts

QUESTION = {"question": "How high is the flame of a candle?", "collection": "guide"}
SEARCH = {"query": "flame", "collection": "guide"}
COMPLETION = {"model": "carrel:guide", "messages": [{"role": "user", "content": "flame?"}]}
HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def limited(session: Session, **changes: Any) -> AppState:
    services = make_app_state(session)
    settings = session.settings.model_copy(update=changes)
    limits = CallerLimits(settings, Spending(parts(session.store).database))
    runner = SessionRunner(session, settings, [limits])
    return replace(services, settings=settings, limits=limits, runner=runner)


@contextmanager
def calling(services: AppState, **given: Any) -> Iterator[httpx.Client]:
    """Call a new server over these services with a new key."""
    key, _ = Keys(parts(services.session.store).database).create("acme", **given)
    headers = {"Authorization": f"Bearer {key}"}
    with (
        running(services) as url,
        httpx.Client(base_url=url, headers=headers, timeout=SECONDS, verify=False) as client,
    ):
        yield client


def test_requests_are_counted_and_refused(session: Session) -> None:
    with calling(limited(session, serve_rate=2)) as client:
        seen = [client.post("/api/v1/search", json=SEARCH) for _ in range(3)]
        asked = client.post("/api/v1/chat", json=QUESTION)
        health = client.get("/api/v1/health")
    assert [one.status_code for one in seen] == [200, 200, 429]
    assert [one.headers["x-ratelimit-remaining"] for one in seen] == ["1", "0", "0"]
    error = error_of(seen[2])
    assert error["code"] == "too_many_requests" and "2 requests in a minute" in error["rule"]
    assert 1 <= int(seen[2].headers["retry-after"]) <= 60
    assert seen[2].headers["x-ratelimit-limit"] == "2"
    assert asked.status_code == health.status_code == 200  # counted apart, and not at all


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/chat", QUESTION),
        ("/api/v1/chat", {**QUESTION, "stream": True}),
        ("/agent/invoke", {"input": QUESTION}),
        ("/agent/stream", {"input": QUESTION}),
        ("/agent/c/N4XyA/stream_log", {"input": QUESTION}),
        ("/v1/chat/completions", COMPLETION),
        ("/v1/chat/completions", {**COMPLETION, "stream": True}),
        ("/v1/responses", {"model": "carrel:guide", "input": QUESTION["question"]}),
    ],
)
def test_every_protocol_is_told_in_its_own_words(
    session: Session, path: str, body: dict[str, Any]
) -> None:
    with calling(limited(session, serve_ask_rate=1)) as client:
        first, second = (client.post(path, json=body) for _ in range(2))
        search = client.post("/api/v1/search", json=SEARCH)
    assert (first.status_code, second.status_code, search.status_code) == (200, 429, 200)
    assert first.headers["x-ratelimit-remaining"] == "0"
    for header in (*HEADERS, "retry-after"):
        assert int(second.headers[header]) >= 0
    body = second.json()
    if path.startswith("/v1"):
        assert body["error"]["type"] == "rate_limit_error"
        assert body["error"]["code"] == "rate_limit_exceeded"
        assert second.headers["x-ratelimit-limit-requests"] == "1"
        assert second.headers["x-ratelimit-reset-requests"].endswith("s")
    elif path.startswith("/agent"):
        assert "1 questions in a minute" in body["detail"]
    else:
        assert error_of(second)["code"] == "too_many_requests"


def test_a_batch_counts_as_the_questions_in_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "BATCH_AT_ONCE", 1)
    with calling(limited(session, serve_ask_rate=3)) as client:
        batch = client.post("/agent/batch", json={"inputs": [QUESTION, QUESTION]})
        again = client.post("/agent/batch", json={"inputs": [QUESTION, QUESTION]})
    assert (batch.status_code, again.status_code) == (200, 200)
    answered, refused = again.json()["output"]
    assert answered["answer"] and refused["error"]["status_code"] == 429


def test_every_route_that_asks_is_known(session: Session) -> None:
    served = {
        path
        for path, operations in make_api(make_app_state(session)).openapi()["paths"].items()
        for operation in operations.values()
        if path in ASKING or "uestion" in (operation.get("description") or "")[:30]
    }
    assert served == ASKING


def test_the_user_is_counted_not_the_key_and_nobody_else(session: Session) -> None:
    services = limited(session, serve_rate=2)
    keys = Keys(parts(session.store).database)
    other = {"Authorization": f"Bearer {keys.create('acme', user='lim2')[0]}"}
    second = {"Authorization": f"Bearer {keys.create('acme', user='lim1')[0]}"}
    with calling(services, user="lim1") as client:
        assert client.get("/api/v1/runs").status_code == 200
        assert client.get("/api/v1/runs", headers=second).status_code == 200
        assert client.get("/api/v1/runs", headers=second).status_code == 429
        assert client.get("/api/v1/runs", headers=other).status_code == 200


@pytest.mark.parametrize(("rate", "codes"), [(1, [200, 429]), (0, [200, 200])])
def test_a_key_has_its_own_limits(session: Session, rate: int, codes: list[int]) -> None:
    with calling(limited(session, serve_ask_rate=1), rate=rate) as client:
        found = [client.post("/api/v1/chat", json=QUESTION).status_code for _ in range(2)]
    assert found == codes


def test_a_changed_limit_holds_for_what_was_done_before(session: Session) -> None:
    services = limited(session, serve_rate=5)
    with calling(services) as client:
        for _ in range(3):
            assert client.get("/api/v1/runs").status_code == 200
        services.limits.settings = services.settings.model_copy(update={"serve_rate": 3})
        assert client.get("/api/v1/runs").status_code == 429
        services.limits.settings = services.settings.model_copy(update={"serve_rate": 4})
        assert client.get("/api/v1/runs").status_code == 200


def test_who_has_used_their_tokens_waits(session: Session) -> None:
    services = limited(session, serve_tokens_per_day=1000)
    Spending(parts(session.store).database).add("acme", "spender", 1000)
    fresh = limited(session, serve_tokens_per_day=1000)  # a server that is started again
    with calling(services, user="spender") as client:
        assert client.post("/api/v1/chat", json=QUESTION).status_code == 200
    with calling(fresh, user="spender") as client:
        refused = client.post("/api/v1/chat", json=QUESTION)
        openai = client.post("/v1/chat/completions", json=COMPLETION)
        assert client.post("/api/v1/search", json=SEARCH).status_code == 200
    assert refused.status_code == openai.status_code == 429
    assert "1000 tokens" in error_of(refused)["rule"]
    assert int(refused.headers["retry-after"]) > 22 * 3600
    assert openai.headers["x-ratelimit-limit-tokens"] == "1000"
    more = limited(session, serve_tokens_per_day=1000)
    with calling(more, user="spender", tokens_per_day=2000) as client:
        assert client.post("/api/v1/chat", json=QUESTION).status_code == 200


def test_a_run_is_charged_for_its_calls_also_when_it_fails(session: Session) -> None:
    spending = Spending(parts(session.store).database)
    limits = CallerLimits(load_settings({"serve_tokens_per_day": 500})[0], spending)
    auth = AuthContext(tenant="acme", user="charged")
    note = asyncio.run(limits.admit(auth))
    call = ModelCall(verb="plan", prompt_hash="", prompt_tokens=90, completion_tokens=10)
    note.on_step(Step(node="plan", calls=[call, call]))
    note.on_step(Step(node="retrieve"))
    assert spending.spent("acme", "charged") == 0
    note.on_end(None)
    assert spending.spent("acme", "charged") == 200
    asyncio.run(limits.admit(auth)).on_end(None)
    assert spending.spent("acme", "charged") == 200


def test_wrong_keys_are_slowed_down_and_lock_nobody_out(session: Session) -> None:
    services = limited(session, serve_wrong_keys=3)
    wrong = [f"Bearer carrel_{'0' * 12}_{number:064x}" for number in range(3)]
    with calling(services) as client:
        tries = [*wrong, "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x", "Basic eDp5"]
        seen = [client.get("/v1/models", headers={"Authorization": one}) for one in tries]
        none = httpx.get(client.base_url.join("/api/v1/runs"))
        good = client.get("/api/v1/runs")
    assert [one.status_code for one in seen] == [401, 401, 401, 429, 429]
    assert int(seen[3].headers["retry-after"]) >= 1
    assert seen[3].json()["error"]["type"] == "rate_limit_error"
    assert (none.status_code, good.status_code) == (401, 200)


def test_wrong_keys_are_counted_by_address(session: Session) -> None:
    settings, _ = load_settings({"serve_wrong_keys": 1})
    limits = CallerLimits(settings, Spending(parts(session.store).database))
    for other in ("2001:db8::1", "192.0.2.1", "2001:db8:0:1::1", "no address"):
        asyncio.run(limits.wrong_key(other))
    for same in ("2001:db8::ffff:2", "192.0.2.1"):
        with pytest.raises(LimitExceeded, match="1 wrong keys"):
            asyncio.run(limits.wrong_key(same))


@pytest.fixture
def redis() -> Iterator[RunningRedis]:
    if REDIS is None:
        pytest.skip(MISSING)
    running_redis = RunningRedis()
    running_redis.start()
    yield running_redis
    running_redis.end()


def test_servers_count_together_in_redis_and_alone_without(
    redis: RunningRedis, caplog: pytest.LogCaptureFixture
) -> None:
    settings, _ = load_settings({"cache_redis_url": redis.url})

    def counted(windows: RateLimiter, times: int, limit: int = 3) -> list[bool]:
        async def main() -> list[bool]:
            owner = ("acme", "ann")
            return [(await windows.hit("ask", owner, limit)).allowed for _ in range(times)]

        return asyncio.run(main())

    one, other = RateLimiter(settings), RateLimiter(settings)
    assert counted(one, 2) == [True, True]
    assert counted(other, 2) == [True, False]
    standing = asyncio.run(other.look("ask", ("acme", "ann"), 3))
    assert (standing.allowed, standing.remaining) == (False, 0)
    assert 1 <= standing.reset <= 60
    assert counted(one, 1, limit=4) == [True]
    redis.stop()
    assert counted(other, 4) == [True, True, True, False]  # by itself, from zero
    assert [one.name for one in caplog.records].count("carrel.serve") == 1  # said once
    assert counted(RateLimiter(settings), 1) == [True]  # one that starts meanwhile


def test_nothing_in_redis_names_who_is_counted(redis: RunningRedis) -> None:
    from redis import Redis

    windows = RateLimiter(load_settings({"cache_redis_url": redis.url})[0])
    owners = [("Zyxacme", "ann"), ("Zyxacme", "ann/b"), ("Zyxacme/ann", "b"), ("192.0.2.77",)]
    for owner in owners:
        assert asyncio.run(windows.hit("ask", owner, 1)).allowed
        assert not asyncio.run(windows.hit("ask", owner, 1)).allowed
    with Redis.from_url(redis.url) as client:
        keys = client.keys()
        dumped = b"".join([*keys, *(client.dump(key) for key in keys)])
    assert len(keys) == len(owners)
    assert not [one for one in (b"Zyxacme", b"ann", b"192.0") if one in dumped]


def test_redis_with_a_password_or_none_at_the_port() -> None:
    given = {"cache_redis_url": "redis://127.0.0.1:1/0", "cache_redis_password": "walrus"}
    windows = RateLimiter(load_settings(given)[0])
    assert asyncio.run(windows.hit("ask", ("acme", "ann"), 1)).allowed
    assert not asyncio.run(windows.hit("ask", ("acme", "ann"), 1)).allowed
