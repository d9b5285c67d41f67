"""The agent through LangServe's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import reduce
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langserve import RemoteRunnable
from langserve.lzstring import LZString
from protocol_servers import (
    ANSWER,
    QUESTION,
    TWO_PARTS,
    UNANSWERABLE,
    Server,
)

from core.auth import AuthContext
from serve.protocols.langserve_schemas import AgentOutput

READER = AuthContext(tenant="default", user="reader")
ASKED = {"question": QUESTION, "collection": "xpay"}


@pytest.fixture
def agent(server: Server) -> Callable[..., RemoteRunnable]:
    def remote(path: str = "/agent", key: str = "reader") -> RemoteRunnable:
        return RemoteRunnable(
            server.url + path, headers={"Authorization": f"Bearer {key}"}, timeout=60
        )

    return remote


def lasting(output: dict[str, Any]) -> dict[str, Any]:
    """Return what two runs of one question have in common."""
    usage = {name: value for name, value in output["usage"].items() if name != "ms"}
    return {**output, "usage": usage, "run_id": ""}


def run(remote: RemoteRunnable, work: Callable[[RemoteRunnable], Any]) -> Any:
    """Do async work on a loop of its own: a result, or the list of what is iterated."""

    async def main() -> Any:
        try:
            done = work(remote)
            return [item async for item in done] if hasattr(done, "__aiter__") else await done
        finally:
            await remote.async_client.aclose()

    return asyncio.run(main())


def test_invoke_returns_what_ask_json_prints(agent: Any, server: Server) -> None:
    output = agent().invoke(ASKED)
    assert output["answer"] == ANSWER
    AgentOutput.model_validate(output)
    kept = server.runner.session.store.runs.load(READER, output["run_id"])
    assert kept.result == output


def test_ainvoke_returns_the_same(agent: Any) -> None:
    remote = agent()
    assert lasting(run(remote, lambda it: it.ainvoke(ASKED))) == lasting(remote.invoke(ASKED))


def test_what_fails_in_a_batch_fails_alone(agent: Any) -> None:
    absent = {"question": QUESTION, "collection": "nowhere"}
    inputs = [ASKED, {"question": ""}, absent, ASKED]
    for outputs in (agent().batch(inputs), run(agent(), lambda it: it.abatch(inputs))):
        assert [one.get("answer") for one in outputs] == [ANSWER, None, None, ANSWER]
        assert outputs[1]["error"]["status_code"] == 400
        assert "at least one word" in outputs[1]["error"]["message"]
        assert "nowhere" in outputs[2]["error"]["message"]
    with pytest.raises(httpx.HTTPStatusError, match="400"):  # nothing was answered
        agent().batch([absent, {"question": ""}])


def test_batch_answers_in_order(agent: Any) -> None:
    other = {"question": TWO_PARTS, "collection": "xpay"}
    outputs = agent().batch([ASKED, other, ASKED])
    assert [len(output["claims"]) for output in outputs] == [1, 2, 1]
    assert len({output["run_id"] for output in outputs}) == 3
    asynchronous = run(agent(), lambda it: it.abatch([other, ASKED]))
    assert [len(output["claims"]) for output in asynchronous] == [2, 1]


@pytest.mark.parametrize("question", [QUESTION, TWO_PARTS, UNANSWERABLE])
def test_pieces_of_a_stream_add_up_to_the_output(agent: Any, question: str) -> None:
    asked = {"question": question, "collection": "xpay"}
    remote = agent()
    whole = lasting(remote.invoke(asked))
    pieces = list(remote.stream(asked))
    asynchronous = run(remote, lambda it: it.astream(asked))
    for chunks in (pieces, asynchronous):
        assert lasting(reduce(lambda a, b: a + b, chunks)) == whole


def test_sentences_come_before_the_result(agent: Any) -> None:
    pieces = list(agent().stream(ASKED))
    assert pieces[0] == {"answer": ANSWER}
    assert pieces[-1]["answer"] == ""


def test_stream_log_builds_the_output(agent: Any) -> None:
    patches = run(agent(), lambda it: it.astream_log(ASKED))
    log = reduce(lambda a, b: a + b, patches).state
    assert log["final_output"]["answer"] == ANSWER
    assert log["name"] == "/agent"
    assert {"understand", "retrieve", "generate", "verify"} <= set(log["logs"])
    assert log["logs"]["verify"]["final_output"]["node"] == "verify"


def test_stream_events_tell_the_steps(agent: Any) -> None:
    events = run(agent(), lambda it: it.astream_events(ASKED))
    assert [events[0]["event"], events[-1]["event"]] == ["on_chain_start", "on_chain_end"]
    assert events[-1]["data"]["output"]["answer"] == ANSWER
    assert events[0]["data"]["input"]["question"] == QUESTION
    steps = [event["name"] for event in events if event["event"] == "on_chain_end"][:-1]
    assert steps[0] == "understand" and steps[-1] == "verify"
    only = run(agent(), lambda it: it.astream_events(ASKED, include_names=["retrieve"]))
    assert {event["name"] for event in only} == {"retrieve"}


def test_messages_are_the_dialogue_before_the_question(agent: Any, server: Server) -> None:
    before = [HumanMessage(QUESTION), AIMessage(ANSWER), HumanMessage("Never answered?")]
    asked = {"question": "And who maintains it?", "collection": "xpay", "messages": before}
    output = agent().invoke(asked)
    assert "Payout Operations" in output["answer"]
    assert server.runner.asked[0][0].history == ((QUESTION, ANSWER),)


def hashed(config: object) -> str:
    return LZString.compressToEncodedURIComponent(json.dumps(config, ensure_ascii=False))


def test_a_config_in_the_path_chooses_collection_and_pipeline(agent: Any, server: Server) -> None:
    config = {"configurable": {"collection": "xpay", "pipeline": "classic", "other": "☃"}, "x": 1}
    remote = agent(f"/agent/c/{hashed(config)}")
    assert remote.invoke({"question": QUESTION})["answer"].startswith(ANSWER[:-4])
    remote.invoke({"question": QUESTION}, config={"configurable": {"pipeline": "agentic"}})
    asked = [(one.collection, one.pipeline) for one, _ in server.runner.asked]
    assert asked == [("xpay", "classic"), ("xpay", "agentic")]


def test_no_config_says_who_asks(agent: Any, server: Server) -> None:
    theirs = {"tenant": "other", "user": "stranger", "roles": ["admin"], "auth": {"tenant": "x"}}
    config = {"configurable": {"collection": "xpay", **theirs}, "metadata": theirs, **theirs}
    agent(f"/agent/c/{hashed(config)}").invoke({"question": QUESTION}, config=config)
    auth = server.runner.asked[0][1]
    assert (auth.tenant, auth.user, auth.roles) == ("default", "reader", frozenset())


def test_another_tenants_collection_is_not_there(agent: Any) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="must exist"):
        agent(key="stranger").invoke(ASKED)
    with pytest.raises(httpx.HTTPStatusError, match="400 Bad Request"):
        list(agent(key="stranger").stream(ASKED))


def test_a_wrong_key_is_refused(agent: Any) -> None:
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        agent(key="wrong").invoke(ASKED)
