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
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from benchmarks.llm_measure import (
    AUTH,
    COLLECTION,
    EXAMPLES,
    PATIENCE,
    Server,
    decisions,
    dialogue,
    speeds,
)
from benchmarks.random_model import SHAPES, write_random_model
from core.fields.chat import DECISIONS
from core.settings import Settings, load_settings

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
