"""Measure one llama-server: its own speed, then Carrel's decisions and a dialogue through it."""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from app.session import Session
from core.auth import AuthContext
from core.budget import Ledger, opened_ledger
from core.settings import Settings
from core.trace import ModelCall
from core.types import Evidence, Plan, SubQuestion
from reasoning.types import Reasoner, Turn

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "xpay"
COLLECTION = "bench"
AUTH = AuthContext(tenant="default", user="bench")
PASSAGES = 10
PATIENCE = 3600.0  # seconds for one call: a slow machine is measured, not given up
QUESTION = "How long does a refund take, and which error is returned when it is too late?"
TURNS = (
    "How do I request a refund?",
    "How long does it take?",
    "Which errors can it return?",
    "What is the rate limit of that endpoint?",
    "And who gets the webhook about it?",
)
WORDS = range(300, 2000)  # token ids that are plain words in any vocabulary


@dataclass(frozen=True)
class Server:
    """Hold the address of a llama-server, without /v1, and its key."""

    url: str
    key: str = ""

    def post(self, path: str, values: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to one request."""
        headers = {"Authorization": f"Bearer {self.key}"}
        reply = httpx.post(f"{self.url}{path}", json=values, headers=headers, timeout=PATIENCE)
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found

    def worked(self) -> float | None:
        """Return the seconds it has worked on tokens so far, None when it does not count them."""
        headers = {"Authorization": f"Bearer {self.key}"}
        reply = httpx.get(f"{self.url}/metrics", headers=headers, timeout=PATIENCE)
        pattern = r"^llamacpp:(?:prompt|tokens_predicted)_seconds_total (\S+)$"
        found = re.findall(pattern, reply.text, re.MULTILINE)
        return sum(map(float, found)) if len(found) == 2 else None


def p50_p95(values: Sequence[float]) -> dict[str, Any]:
    """Return p50, p95 and n, rounded to tenths."""
    ordered = sorted(values)
    if not ordered:
        return {"p50": None, "p95": None, "n": 0}
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {"p50": round(statistics.median(ordered), 1), "p95": round(p95, 1), "n": len(ordered)}


def speeds(
    server: Server, lengths: Sequence[int], generated: int, repeat: int, said: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return tokens per second by prompt length, as the server times them; nothing is cached."""
    rows = []
    draw = random.Random(0)
    for length in lengths:
        said(f"prompt of {length} tokens")
        timings = []
        for _ in range(repeat):
            prompt = [draw.choice(WORDS) for _ in range(length)]
            values = {"prompt": prompt, "n_predict": generated, "cache_prompt": False}
            values |= {"ignore_eos": True, "temperature": 0.0}
            timings.append(server.post("/completion", values)["timings"])
        rows.append(
            {
                "prompt_tokens": length,
                "prompt_per_second": p50_p95([row["prompt_per_second"] for row in timings]),
                "generated_per_second": p50_p95([row["predicted_per_second"] for row in timings]),
            }
        )
        read, written = (rows[-1][f"{name}_per_second"]["p50"] for name in ("prompt", "generated"))
        said(f"  {read} tokens/s read, {written} written")
    return rows


def decisions(
    session: Session, server: Server, repeat: int, said: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return, for each verb, its time, the model's share of it by the server's clock, its tokens.

    `overhead_ms` is the time without the model's, `outside_ms` that without whole calls. Each
    round asks another question, so that only the shared start of a prompt is cached.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    if session.embedder is not None:
        session.embedder.embed_query("warm up")
    for number in range(repeat):
        said(f"decisions, round {number + 1} of {repeat}")
        for verb, decide in _verbs(session, f"{QUESTION} (Case {number + 1}.)"):
            rows.setdefault(verb, []).append(_timed(verb, decide, session.settings, server))
    return [_summary(verb, found) for verb, found in rows.items()]


def _verbs(session: Session, question: str) -> list[tuple[str, Callable[[], object]]]:
    context = session.context(AUTH, COLLECTION)
    reasoner: Reasoner = context.reasoner
    specs = context.tools.specs(AUTH)
    found = _evidence(session, question)
    understanding = _rules(session).understand(question, [])
    plan = _rules(session).plan(understanding, specs)
    first: SubQuestion = plan.questions[0]
    graded = [item.model_copy(update={"grades": {first.id: 3}}) for item in found]
    alone = Plan(questions=[first])
    history = [Turn("What is XPay?", "XPay is a payment service.")]
    return [
        ("understand", lambda: reasoner.understand(question, history)),
        ("plan", lambda: reasoner.plan(understanding, specs)),
        ("grade", lambda: reasoner.grade(first, found)),
        ("rewrite", lambda: reasoner.rewrite(first, found, specs)),
        ("answer", lambda: reasoner.answer(understanding, alone, graded)),
    ]


def _rules(session: Session) -> Reasoner:
    from reasoning.rules.reasoner import RulesReasoner

    return RulesReasoner(session.settings, session.tools(AUTH, COLLECTION).term_weights(), None)


def _evidence(session: Session, question: str) -> list[Evidence]:
    """Return as many passages as are graded at once."""
    tools = session.tools(AUTH, COLLECTION)
    arguments = {"query": question, "limit": PASSAGES, "extended": True}
    result = tools.run("search_text", arguments, AUTH, time.monotonic() + PATIENCE)
    found = list(result.evidence)[:PASSAGES]
    if len(found) < PASSAGES:
        raise RuntimeError(f"the examples gave {len(found)} passages, not {PASSAGES}")
    return found


def _timed(
    verb: str, decide: Callable[[], object], settings: Settings, server: Server
) -> dict[str, Any]:
    ledger = Ledger(time.monotonic() + PATIENCE, settings.budget.tokens, owner="bench")
    worked = server.worked()
    began = time.perf_counter()
    with opened_ledger(ledger):
        decide()
    total = (time.perf_counter() - began) * 1000
    after = server.worked()
    model = None if worked is None or after is None else (after - worked) * 1000
    return {
        "verb": verb,
        "total_ms": total,
        "model_ms": model,
        "overhead_ms": None if model is None else total - model,
        "outside_ms": total - sum(call.ms for call in ledger.calls),
        "calls": ledger.calls,
        "degraded": ledger.degraded,
    }


def _summary(verb: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    calls: list[ModelCall] = [call for row in rows for call in row["calls"]]
    per = max(1, len(rows))
    known = [row for row in rows if row["overhead_ms"] is not None]
    over = [row["overhead_ms"] for row in known]
    each = [row["overhead_ms"] / max(1, len(row["calls"])) for row in known]
    return {
        "verb": verb,
        "total_ms": p50_p95([row["total_ms"] for row in rows]),
        "model_ms": p50_p95([row["model_ms"] for row in rows if row["model_ms"] is not None]),
        "overhead_ms": p50_p95(over),
        "overhead_per_call_ms": p50_p95(each),
        "outside_ms": p50_p95([row["outside_ms"] for row in rows]),
        "calls": round(len(calls) / per, 2),
        "prompt_tokens": round(sum(call.prompt_tokens for call in calls) / per),
        "cached_tokens": round(sum(call.cached_tokens for call in calls) / per),
        "written_tokens": round(sum(call.completion_tokens for call in calls) / per),
        "valid_calls": sum(call.outcome == "ok" for call in calls),
        "cut_calls": sum(call.outcome == "length" for call in calls),
        "degraded": sum(bool(row["degraded"]) for row in rows),
        "errors": sorted({call.error for call in calls if call.error}),
    }


def dialogue(session: Session, turns: int, said: Callable[[str], None]) -> dict[str, Any]:
    """Return what a chat costs, and the share of its prompt tokens that the server still held."""
    history: list[Turn] = []
    calls: list[ModelCall] = []
    seconds: list[float] = []
    for number in range(turns):
        said(f"dialogue, turn {number + 1} of {turns}")
        question = TURNS[number % len(TURNS)]
        began = time.perf_counter()
        run = session.ask(question, AUTH, COLLECTION, history=history)
        seconds.append(time.perf_counter() - began)
        calls += [call for step in run.trail for call in step.calls]
        history.append(Turn(question, str(run.result["answer"]) or "I do not know."))
    read = sum(call.prompt_tokens for call in calls)
    return {
        "turns": turns,
        "calls": len(calls),
        "prompt_tokens": read,
        "cached_tokens": sum(call.cached_tokens for call in calls),
        "cached_share": round(sum(c.cached_tokens for c in calls) / read, 3) if read else None,
        "written_tokens": sum(call.completion_tokens for call in calls),
        "valid_calls": sum(call.outcome == "ok" for call in calls),
        "outcomes": {o: sum(c.outcome == o for c in calls) for o in {c.outcome for c in calls}},
        "seconds_per_turn": [round(value, 1) for value in seconds],
    }
