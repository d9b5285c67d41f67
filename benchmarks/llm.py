"""Measure a chat model through llama-server: tokens per second, time per decision, overhead.

python -m benchmarks.llm --gguf PATH | --url URL | --make tiny|0.6b|4b [--gpu-layers N]
[--repeat N] [--json OUT]. With --gguf or --make it starts llama-server (CARREL_LLAMA__SERVER,
else PATH). --make writes a model of a real Qwen3's shape with random weights into the cache: its
speed is that of the real one, its words are noise. So decisions through it are mostly degraded,
and how much they write says nothing of a real model; tokens per second and overhead do.

Model time is what the server says it spent on tokens (its /metrics); overhead is all the rest of a
decision: prompts, checks, embedding, HTTP, counting tokens, and what the server does outside of
tokens. "Outside calls" is Carrel alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from app.session import Session
from benchmarks.random_model import SHAPES, write_random_model
from core.auth import AuthContext
from core.budget import Ledger, opened_ledger
from core.fields.chat import DECISIONS
from core.settings import Settings, load_settings
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


LENGTHS = (128, 512, 2048)
GENERATED = 64


def say(text: str) -> None:
    """Say on stderr what is being done."""
    sys.stderr.write(f"{text}\n")


@contextlib.contextmanager
def started(model: Path, arguments: argparse.Namespace, settings: Settings) -> Iterator[Server]:
    """Serve a GGUF on a free port until the measurement is over."""
    program = shutil.which(settings.llama.server or "llama-server")
    if program is None:
        raise SystemExit("llama-server is not here: set CARREL_LLAMA__SERVER, or give --url")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = secrets.token_hex(16)
    command = [program, "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
    command += ["-c", str(arguments.context), "-np", "1", "--cache-ram", "0", "--metrics"]
    command += ["-ngl", str(arguments.gpu_layers), "--offline"]
    if arguments.threads:
        command += ["-t", str(arguments.threads)]
    say(" ".join(command))
    command += ["--api-key", key]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            server = Server(f"http://127.0.0.1:{port}", key)
            if not _healthy(server, process):
                log.seek(0)
                tail = log.read().decode(errors="replace")[-2000:]
                raise SystemExit(f"llama-server did not start:\n{tail}")
            yield server
        finally:
            process.kill()
            process.wait()


def _healthy(server: Server, process: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server.url}/health", timeout=5).status_code == 200:
                return True
        time.sleep(0.2)
    return False


def measure(server: Server, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all that was measured."""
    from app.session import Session
    from cli.upkeep.ingest import run_ingest

    lengths = [length for length in LENGTHS if length + GENERATED < arguments.context]
    result: dict[str, Any] = {"machine": machine()}
    result["speed"] = speeds(server, lengths, GENERATED, arguments.repeat, say)
    with tempfile.TemporaryDirectory() as folder:
        patient = dict.fromkeys(
            ["llm_first_token_seconds", "llm_gap_seconds", "llm_call_seconds", "budget_seconds"],
            PATIENCE,
        )
        flags = {"data": Path(folder), "reasoner": "llm", "llm_url": f"{server.url}/v1", **patient}
        flags["llm_decisions"] = list(DECISIONS)
        flags |= {"llm_key": server.key or None, "budget_tokens": 10_000_000}
        if arguments.make:
            flags["llm_repairs"] = 0  # asking noise again says nothing
        settings = load_settings(flags)[0]
        run_ingest(
            [EXAMPLES],
            COLLECTION,
            profile="xpay",
            tenant=AUTH.tenant,
            acl="",
            prune=False,
            flags={"data": Path(folder)},
            quiet=True,
        )
        with Session(settings) as session:
            if session.chat is None:
                raise SystemExit("; ".join(session.warnings))
            if arguments.decisions:
                result["decisions"] = decisions(session, server, arguments.decisions, say)
            if arguments.turns:
                result["dialogue"] = dialogue(session, arguments.turns, say)
    return result


def machine() -> dict[str, Any]:
    """Return what the figures depend on, the load when the measurement began among it."""
    gpu = ""
    if shutil.which("nvidia-smi"):
        asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        gpu = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    cores = os.cpu_count()
    load = round(os.getloadavg()[0], 1)
    return {"cpu": platform.processor() or platform.machine(), "cores": cores, "load": load,
            "gpu": gpu}  # fmt: skip


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    out = sys.stdout.write
    place = result["machine"]
    out(f"{result['model']}; {place['cores']} cores, load {place['load']} at the start")
    out(f"; GPU {place['gpu'] or 'none'}, {result['gpu_layers']} layers asked for it\n\n")
    out("prompt tokens  read tokens/s  written tokens/s   n\n")
    for row in result["speed"]:
        read, written = row["prompt_per_second"], row["generated_per_second"]
        out(f"{row['prompt_tokens']:>13}{read['p50']:>15}{written['p50']:>18}{read['n']:>4}\n")
    if "decisions" in result:
        _show_decisions(result["decisions"])
    if "dialogue" in result:
        found = result["dialogue"]
        out(f"\ndialogue of {found['turns']} turns: {found['calls']} calls,")
        out(f" {found['prompt_tokens']} tokens read, {found['cached_share']} of them cached,")
        out(f" {found['written_tokens']} written; seconds per turn {found['seconds_per_turn']}\n")
    out(f"\n{result['note']}\n")


def _show_decisions(rows: list[dict[str, Any]]) -> None:
    out = sys.stdout.write
    out("\nms, p50 (p95)     total     model       overhead   per call  outside calls")
    out("   tokens read  cached  written  calls  valid  n\n")
    for row in rows:
        over, outside = row["overhead_ms"], row["outside_ms"]
        spread = f"{over['p50']} ({over['p95']})" if over["n"] else "?"
        out(f"{row['verb']:<11}{row['total_ms']['p50']:>12}{row['model_ms']['p50'] or '?':>10}")
        out(f"{spread:>15}{row['overhead_per_call_ms']['p50'] or '?':>11}{outside['p50']:>15}")
        out(f"{row['prompt_tokens']:>14}{row['cached_tokens']:>8}{row['written_tokens']:>9}")
        out(f"{row['calls']:>7}{row['valid_calls']:>7}{row['total_ms']['n']:>3}\n")


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--gguf", type=Path, help="a model to serve")
    source.add_argument("--url", help="a llama-server that runs with --metrics (CARREL_LLM__KEY)")
    source.add_argument("--make", choices=[*SHAPES], help="a model with random weights")
    parser.add_argument("--gpu-layers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--repeat", type=int, default=3, help="runs for each prompt length")
    parser.add_argument(
        "--decisions", type=int, default=5, help="rounds of the five decisions, 0 for none"
    )
    parser.add_argument("--turns", type=int, default=5, help="turns of the dialogue, 0 for none")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser.parse_args()


def main() -> None:
    """Measure, print and write."""
    arguments = parsed()
    settings, _ = load_settings()
    note = "A busy machine shows in every time; compare only figures of one run."
    model = arguments.gguf
    if arguments.make:
        shape = SHAPES[arguments.make]
        name = f"{shape.name}-{shape.quantisation}-v2.gguf"
        model = write_random_model(settings.cache.expanduser() / "bench" / name, shape, say)
        note += (
            f" Random weights, {shape.quantisation}: tokens per second are those of real ones."
            " Model time of decisions is not: replies are noise, mostly invalid (they are not asked"
            " for again here), and where a first choice breaks the grammar, which real ones seldom"
            " do, the server checks its whole vocabulary."
        )
    with contextlib.ExitStack() as stack:
        if arguments.url:
            key = settings.llm.key.get_secret_value() if settings.llm.key else ""
            server = Server(arguments.url.rstrip("/").removesuffix("/v1"), key)
        else:
            server = stack.enter_context(started(model, arguments, settings))
        result = {"model": str(arguments.url or model.name), "gpu_layers": arguments.gpu_layers}
        result |= measure(server, arguments) | {"note": note}
    show(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
