"""Traces as a receiver of OTLP gets them: whole, and without anything that was said."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from serving import SECONDS, running

from app.session import Session
from core.errors import OperatorError
from core.settings import load_settings
from core.trace import ModelCall, Step
from serve.services import make_app_state
from serve.telemetry.tracing import Tracing, _RunSpan, make_tracing
from stores.accounts.keys import Keys
from stores.store import parts

QUESTION = {"question": "How high is the flame of a candle?", "collection": "guide"}
PARENT = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


class Receiver:
    """A real receiver of OTLP/HTTP on loopback."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802 - the library's name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    outer.raw.append(body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *given: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def spans(self) -> list[Any]:
        messages = [ExportTraceServiceRequest.FromString(body) for body in self.raw]
        scopes = [s for m in messages for r in m.resource_spans for s in r.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    opened = Receiver()
    yield opened
    opened.close()


def facts(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_question_is_one_trace_from_the_caller_down(
    session: Session, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = session.settings.model_copy(update={"otel_endpoint": receiver.url})
    monkeypatch.setattr(session, "settings", changed)
    key, _ = Keys(parts(session.store).database).create("acme", user="traced")
    headers = {"Authorization": f"Bearer {key}", "traceparent": f"00-{PARENT[0]}-{PARENT[1]}-01"}
    services = make_app_state(session)
    with running(services) as url:
        for extra in ({}, {"stream": True}):
            sent = {**QUESTION, **extra}
            answer = httpx.post(f"{url}/api/v1/chat", json=sent, headers=headers, timeout=SECONDS)
            assert answer.status_code == 200
        httpx.get(f"{url}/nothing/walrus?key=walrus", headers={"traceparent": "walrus"})
    spans = receiver.spans()
    ours = [span for span in spans if span.trace_id.hex() == PARENT[0]]
    by_id = {span.span_id: span for span in spans}
    roots = [span for span in ours if span.parent_span_id not in by_id]
    assert [span.name for span in roots] == ["POST /api/v1/chat"] * 2
    assert {span.parent_span_id.hex() for span in roots} == {PARENT[1]}
    assert facts(roots[0])["http.response.status_code"] == 200
    runs = [span for span in ours if span.name == "run"]
    assert [by_id[run.parent_span_id] for run in runs] == roots
    nodes = [span for span in ours if span.parent_span_id == runs[0].span_id]
    assert {"understand", "plan", "retrieve", "generate"} & {node.name for node in nodes}
    tools = [span for span in ours if span.name.startswith("tool ")]
    assert tools and all(by_id[tool.parent_span_id] in ours for tool in tools)
    assert all(facts(tool)["carrel.evidence"] >= 0 for tool in tools)
    assert len(facts(runs[0])["carrel.run_id"]) == 12
    for span in spans:
        assert 0 <= span.start_time_unix_nano <= span.end_time_unix_nano
    (lost,) = [span for span in spans if span not in ours]
    assert lost.name == "GET unmatched"
    said = b"".join(receiver.raw)
    for text in (b"flame", b"candle", b"42 mm", b"walrus", key.encode(), b"traced", b"acme"):
        assert text not in said


def test_calls_of_the_model_are_spans_with_counts(session: Session, receiver: Receiver) -> None:
    settings = session.settings.model_copy(update={"otel_endpoint": receiver.url + "/"})
    tracing = make_tracing(settings)
    assert isinstance(tracing, Tracing)
    note = _RunSpan(tracing.tracer)
    call = ModelCall(verb="plan", prompt_hash="h", prompt_tokens=90, completion_tokens=7, ms=2.0)
    call = call.model_copy(update={"reply": "walrus", "error": "walrus"})
    note.on_step(Step(node="plan", reason="walrus", decision="walrus", ms=9.0, calls=[call, call]))
    note.on_end(None)
    tracing.close()
    spans = {span.name: span for span in receiver.spans()}
    models = [span for span in receiver.spans() if span.name == "model plan"]
    assert facts(models[0])["carrel.prompt_tokens"] == 90
    assert models[0].end_time_unix_nano == models[1].start_time_unix_nano
    assert models[0].parent_span_id == spans["plan"].span_id
    assert spans["plan"].parent_span_id == spans["run"].span_id
    assert spans["run"].status.code == 2  # error
    assert b"walrus" not in b"".join(receiver.raw)


def test_the_usual_variable_is_enough(
    session: Session, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    tracing = make_tracing(session.settings)
    assert tracing is not None
    tracing.tracer.start_span("one").end()
    tracing.close()
    assert [span.name for span in receiver.spans()] == ["one"]


def test_without_an_endpoint_nothing_is_imported() -> None:
    code = (
        "import sys; from core.settings import load_settings; import serve.app;"
        " import serve.telemetry.tracing as tracing;"
        "before = set(sys.modules);"  # Chroma uses OpenTelemetry itself
        "assert tracing.make_tracing(load_settings()[0]) is None;"
        "assert set(sys.modules) == before;"
        "assert 'opentelemetry.exporter.otlp.proto.http.trace_exporter' not in before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(OperatorError, match=r"carrel-rag\[otel\]"):
        make_tracing(load_settings({"otel_endpoint": "http://127.0.0.1:1"})[0])
