"""Measure flags of llama-server on and off: the same answers, one variant after another.

python -m benchmarks.llm_flags --gguf FILE [--draft FILE] [--server llama-server] [--rounds 2]:
starts a server for each variant, asks it the exam's questions for answers, and prints tokens per
second as the server tells them. The first question of each round is not counted: it reads what
never changes. `beside a busy core` keeps one core at work meanwhile.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.answer_tables import table
from core.language.scan import estimate_tokens
from reasoning.llm.exam import exam_items
from reasoning.llm.prompts import as_data, evidence_data, language_name, load_prompts

CONTEXT = 4096
READY_SECONDS = 120
QUESTIONS = 6
VARIANTS: dict[str, list[str]] = {
    "as Carrel starts it": [],
    "threads that spin (--poll 50)": ["--poll", "50"],
    "flash attention off": ["--flash-attn", "off"],
    "cache in q8_0": ["--flash-attn", "on", "-ctk", "q8_0", "-ctv", "q8_0"],
    "parts of the cache moved (--cache-reuse 64)": ["--cache-reuse", "64"],
    "words of the prompt as draft (ngram-simple)": ["--spec-type", "ngram-simple"],
}


def prompts() -> list[list[dict[str, str]]]:
    """Return the prompts of the first questions of the exam that have an answer."""
    items, texts = exam_items(), load_prompts()
    asked = [one for one in items.items if one.decision == "answer" and not one.null]
    made = []
    for item in asked[:QUESTIONS]:
        evidence = evidence_data(items.evidence(item.passages))
        user = texts.text(
            "answer",
            evidence=evidence,
            question=as_data(item.question),
            language=language_name(item.language),
        )
        messages = [*texts.dialogue("answer_system"), ("user", user)]
        made.append([{"role": role, "content": text} for role, text in messages])
    return made


@contextmanager
def served(given: argparse.Namespace, flags: list[str]) -> Iterator[str]:
    """Run a server with these flags beside the usual ones; give its address."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    usual = ["-c", str(CONTEXT), "-np", "1", "-t", str(os.cpu_count()), "--cache-ram", "0"]
    usual += ["--jinja", "--poll", "0", "--flash-attn", "auto"]
    command = [given.server, "-m", given.gguf, "--host", "127.0.0.1", "--port", str(port)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, *usual, *flags], stdout=quiet, stderr=quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + READY_SECONDS
        while True:
            try:
                if urllib.request.urlopen(f"{url}/health", timeout=2).status == 200:
                    break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"llama-server does not start with {' '.join(flags)}")
            time.sleep(0.5)
        yield url
    finally:
        process.kill()
        process.wait()


def measure(url: str, rounds: int) -> dict[str, float]:
    """Return tokens per second, read and written, seconds of an answer, and the cached share."""
    told: list[dict[str, Any]] = []
    for _ in range(rounds):
        for place, messages in enumerate(prompts()):
            body = {"messages": messages, "max_tokens": 120, "temperature": 0, "id_slot": 0}
            data = json.dumps(body | {"cache_prompt": bool(place)}).encode()
            request = urllib.request.Request(
                f"{url}/v1/chat/completions", data, {"Content-Type": "application/json"}
            )
            began = time.monotonic()
            reply = json.load(urllib.request.urlopen(request, timeout=600))
            if place:
                told.append(reply["timings"] | {"s": time.monotonic() - began})
    read, cached = (sum(one.get(name, 0) for one in told) for name in ("prompt_n", "cache_n"))
    return {
        "read": read / (sum(one["prompt_ms"] for one in told) / 1000),
        "written": sum(one["predicted_n"] for one in told)
        / (sum(one["predicted_ms"] for one in told) / 1000),
        "seconds": sum(one["s"] for one in told) / len(told),
        "cached": cached / (read + cached),
    }


def spin() -> None:
    """Keep a core busy."""
    while True:
        estimate_tokens("x" * 1000)


def main() -> None:
    """Measure every variant, alone and beside a busy core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--draft", type=Path, help="a smaller model of the same vocabulary")
    parser.add_argument("--server", default=os.environ.get("CARREL_LLAMA__SERVER", "llama-server"))
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    variants = dict(VARIANTS)
    if given.draft:
        flags = ["--spec-type", "draft-simple", "-md", str(given.draft)]
        variants["a smaller model as draft"] = flags
    lines = []
    for name, flags in variants.items():
        with served(given, flags) as url:
            found = measure(url, given.rounds)
            busy = multiprocessing.Process(target=spin, daemon=True)
            busy.start()
            beside = measure(url, 1)
            busy.kill()
        figures = (f"{found[key]:.1f}" for key in ("read", "written", "seconds"))
        share = f"{found['cached']:.2f}"
        lines.append([name, *figures, share, f"{beside['read']:.1f}", f"{beside['written']:.1f}"])
        sys.stderr.write(f"{lines[-1]}\n")
    head = ("llama-server", "read /s", "written /s", "s", "cached", "beside a busy core: read /s")
    sys.stdout.write(table([*head, "written /s"], lines) + "\n")


if __name__ == "__main__":
    main()
