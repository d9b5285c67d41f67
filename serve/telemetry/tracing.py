"""Traces for OpenTelemetry: request, run, node, tool call, model call; ids, times and counts only.

Nothing of it is imported until an endpoint is set.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.auth import AuthContext
from core.distribution import require_extra
from core.settings import Settings
from core.trace import RunRecord, Step
from serve.runs.observers import RunObserver
from serve.telemetry.metrics import METHODS

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PATH = "/v1/traces"  # OTLP/HTTP
MS = 1_000_000  # nanoseconds


def make_tracing(settings: Settings) -> Tracing | None:
    """Return what traces, None without an endpoint; raises OperatorError without the extra."""
    if not settings.serve.otel_endpoint and not any(os.environ.get(name) for name in VARIABLES):
        return None
    require_extra("otel", "tracing")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = os.environ.get("OTEL_SERVICE_NAME", "carrel")
    provider = TracerProvider(resource=Resource.create({"service.name": named}))
    endpoint = settings.serve.otel_endpoint.rstrip("/")
    exporter = OTLPSpanExporter(endpoint=endpoint + PATH if endpoint else None)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


class Tracing:
    """Make the spans of one server and send them in the background."""

    def __init__(self, provider: TracerProvider) -> None:
        """Send through a provider of its own, so that no other library's spans are sent."""
        self._provider = provider
        self.tracer = provider.get_tracer("carrel")

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return the application with a span for each request."""
        return _Traced(app, self.tracer)

    async def admit(self, auth: AuthContext) -> RunObserver:
        """Follow a run; its span begins now, so that it has the time it waits for a thread."""
        return _RunSpan(self.tracer)

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()


class _Traced:
    """Make a span of every request, below that of the caller when `traceparent` names one."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._app = app
        self._tracer = tracer
        self._w3c = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from opentelemetry.trace import SpanKind

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._tracer.start_as_current_span(
            method,
            context=self._w3c.extract(Headers(scope=scope)),
            kind=SpanKind.SERVER,
            record_exception=False,  # its message may hold what was asked
            set_status_on_exception=False,
        ) as span:
            try:
                await self._app(scope, receive, watched)
            finally:
                route = getattr(scope.get("route"), "path", "unmatched")
                span.update_name(f"{method} {route}")
                span.set_attributes(
                    {
                        "http.request.method": method,
                        "http.route": route,
                        "http.response.status_code": status,
                        "carrel.request_id": scope.get("carrel.id", ""),
                    }
                )
                _set_status(span, failed=status >= 500 or not status)


class _RunSpan(RunObserver):
    """Make the spans of one run out of its steps, which say how long they took."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry.trace import set_span_in_context

        self._tracer = tracer
        self._span = tracer.start_span("run")  # below the request, which is the current one
        self._below = set_span_in_context(self._span)

    def on_step(self, step: Step) -> None:
        """Add a node with its tool call and the model's calls, one after the other."""
        from opentelemetry.trace import set_span_in_context

        end = time.time_ns()
        start = end - int(step.ms * MS)
        facts: dict[str, str | bool] = {
            "carrel.question_id": step.question_id,
            "carrel.degraded": bool(step.degraded),
        }
        node = self._tracer.start_span(step.node, self._below, attributes=facts, start_time=start)
        below = set_span_in_context(node)
        if step.tool:
            self._make_span(f"tool {step.tool}", below, start, end, evidence=len(step.evidence))
        for call in step.calls:
            finish = min(end, start + int(call.ms * MS))
            counts = {
                "prompt_tokens": call.prompt_tokens,
                "cached_tokens": call.cached_tokens,
                "completion_tokens": call.completion_tokens,
                "first_ms": call.first_ms,
                "outcome": call.outcome,
            }
            self._make_span(f"model {call.verb}", below, start, finish, **counts)
            start = finish
        node.end(end)

    def on_end(self, run: RunRecord | None) -> None:
        """End the span; without an answer it has failed."""
        if run is not None:
            usage = run.result.get("usage", {})
            names = ("steps", "tool_calls", "tokens", "model_calls", "model_tokens", "degraded")
            self._span.set_attributes(
                {
                    "carrel.run_id": run.run_id,
                    "carrel.refused": bool(run.result.get("refused")),
                    "carrel.stop_reason": str(run.result.get("stop_reason")),
                    **{f"carrel.{name}": usage[name] for name in names if name in usage},
                }
            )
        _set_status(self._span, failed=run is None)
        self._span.end()

    def _make_span(self, name: str, below: Context, start: int, end: int, **counts: Any) -> None:  # noqa: ANN401
        facts = {f"carrel.{key}": value for key, value in counts.items()}
        span = self._tracer.start_span(name, below, attributes=facts, start_time=start)
        span.end(end)


def _set_status(span: Span, *, failed: bool) -> None:
    from opentelemetry.trace import StatusCode

    if failed:
        span.set_status(StatusCode.ERROR)
