"""The development server of LangGraph, as a person starts it, and its client."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ingesting import ingest_corpora

ROOT = Path(__file__).parents[2]
LANGGRAPH = Path(sys.executable).with_name("langgraph")
XPAY = ROOT / "examples" / "xpay"
MAINTAINER = "Which team maintains the XPay refund API?"
FOLLOW_UP = "and what is its maximum timeout?"
NODES = ["understand", "retrieve", "grade_documents", "stop_condition", "generate", "verify"]
START_S = 30

try:
    import httpx
    import langgraph_api  # noqa: F401
    from langgraph_sdk import get_sync_client
    from langgraph_sdk.client import SyncLangGraphClient
except ImportError:
    pytest.skip(
        'langgraph-cli[inmem] is not installed: pip install -e ".[studio]"',
        allow_module_level=True,
    )


@dataclass
class Server:
    """Hold a running server, its client and its log."""

    client: SyncLangGraphClient
    log_file: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def run(self, given: dict[str, Any] | None, **values: Any) -> dict[str, Any]:
        result = self.client.runs.wait(values.pop("thread", None), "carrel", input=given, **values)
        assert isinstance(result, dict)
        return result

    def thread(self) -> str:
        return str(self.client.threads.create()["thread_id"])


@contextlib.contextmanager
def serving(cwd: Path, data: Path, **variables: str) -> Iterator[Server]:
    """Start `langgraph dev` where it may write its files, and stop it as Ctrl-C does."""
    cwd.mkdir()
    shutil.copy(ROOT / "langgraph.json", cwd)
    (cwd / "app").symlink_to(ROOT / "app")  # langgraph.json's paths start at the cwd
    hidden = ("CARREL_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(hidden) or name == "CARREL_CACHE"
    }
    environment |= {
        "CARREL_DATA": str(data),
        "PYTHONPATH": str(ROOT),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "NO_COLOR": "1",
        **variables,
    }
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log_file = cwd / "log.txt"
    command = [LANGGRAPH, "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
    with (
        log_file.open("wb") as log,
        subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=cwd,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as process,
        get_sync_client(url=f"http://127.0.0.1:{port}", api_key=None) as client,
    ):
        server = Server(client, log_file, process)
        try:
            _wait_until_ok(server)
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ok(server: Server) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            server.client.http.get("/ok")
            return
        time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{server.log}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest a little of XPay as the command does."""
    folder = tmp_path_factory.mktemp("studio") / "data"
    files = [XPAY / "services.jsonl", XPAY / "docs" / "refund.en.md"]
    ingest_corpora(folder, [(files, "default", "xpay", "default", "")])
    return folder


@pytest.fixture(scope="module")
def server(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served") / "cwd", data) as running:
        yield running
        log = running.log
    assert "Traceback" not in log
    assert "Blocking" not in log
    assert "Deserializing unregistered" not in log
    assert "Blocked deserialization" not in log
    assert not list(data.glob("*-wal")), "the data directory was not given back"


def messages(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def test_assistant_is_listed_with_its_schemas_and_drawing(server: Server) -> None:
    [assistant] = server.client.assistants.search()
    assert assistant["graph_id"] == "carrel"
    assert assistant["description"]
    schemas = server.client.assistants.get_schemas(assistant["assistant_id"])
    for name in ("input_schema", "output_schema", "state_schema", "context_schema"):
        assert schemas[name]["type"] == "object"
    assert set(schemas["input_schema"]["properties"]) == {"messages", "question"}
    assert schemas["context_schema"]["properties"] == {}
    drawn = server.client.assistants.get_graph(assistant["assistant_id"])
    assert set(NODES) < {node["id"] for node in drawn["nodes"]}


def test_the_memory_of_studios_user_is_shown(server: Server) -> None:
    assert server.client.store.search_items(("default",))["items"] == []


def test_two_turns_on_a_thread(server: Server) -> None:
    thread = server.thread()
    first = server.run(messages(MAINTAINER), thread=thread)
    answer = first["messages"][-1]
    assert answer["type"] == "ai"
    assert "Payments Gateway" in answer["content"]
    assert "[1]" in answer["content"]
    assert first["answer"]["claims"][0]["citations"][0]["source"]
    parts = [{"type": "text", "text": FOLLOW_UP}]
    second = server.run({"messages": [{"role": "user", "content": parts}]}, thread=thread)
    assert "300 seconds" in second["messages"][-1]["content"]
    assert len(second["messages"]) == 4
    assert [step["node"] for step in second["trail"]].count("understand") == 1


def test_updates_stream_in_the_order_of_the_graph(server: Server) -> None:
    stream = server.client.runs.stream(
        None, "carrel", input=messages(MAINTAINER), stream_mode=["updates"]
    )
    assert [name for part in stream if part.event == "updates" for name in part.data] == NODES


def test_breakpoint_restores_the_state(server: Server) -> None:
    thread = server.thread()
    paused = server.run({"question": MAINTAINER}, thread=thread, interrupt_before=["generate"])
    assert "answer" not in paused
    resumed = server.run(None, thread=thread)
    assert "Payments Gateway" in resumed["answer"]["text"]


def test_unknown_collection_is_readable_and_the_server_goes_on(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "data"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("owner.*"))
    with serving(tmp_path / "cwd", other, CARREL_STUDIO__COLLECTION="nowhere") as unknown:
        with pytest.raises(Exception, match="StudioError: .*nowhere"):
            unknown.run({"question": MAINTAINER})
        assert unknown.client.assistants.search()
        assert "Blocking" not in unknown.log
