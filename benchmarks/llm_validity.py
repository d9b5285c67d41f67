"""How often a chat model's structured replies keep to their schema, among those that ended.

python -m benchmarks.llm_validity --url URL [--key KEY] [--calls N] [--temperature T] [--json OUT].
Asks all verbs about the sample corpora, and checks the replies that ended before max_tokens against
the JSON schema that was sent with them. Whether a decision makes sense is another question: the
reasoner checks that, and the rules take over.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from benchmarks.llm_tokens import MULTI, PLAIN, REFUSED
from cli.ingest import run_ingest
from core.auth import AuthContext
from core.settings import load_settings
from graph.session import Session
from models.chat.open_chat import open_chat
from models.chat.types import ChatModel, ChatReply, ChatRequest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class Recording:
    """Pass calls on and judge the form of every structured reply."""

    def __init__(self, chat: ChatModel) -> None:
        """Count nothing yet."""
        self._chat = chat
        self.name = chat.name
        self.capabilities = chat.capabilities
        self.counts: Counter[str] = Counter()

    def complete(
        self, request: ChatRequest, *, verb: str, on_text: Callable[[str], None] | None = None
    ) -> ChatReply:
        """Return the reply of the chat model."""
        reply = self._chat.complete(request, verb=verb, on_text=on_text)
        if request.schema is None or request.thinking:
            return reply
        verdict = form(reply.text, request.schema) if reply.finish == "stop" else reply.finish
        self.counts[verdict] += 1
        self.counts[f"{verb}: {verdict}"] += 1
        return reply

    def room(self, request: ChatRequest) -> int:
        """Return the room of the chat model."""
        return self._chat.room(request)

    def close(self) -> None:
        """Close the chat model."""
        self._chat.close()


def form(text: str, schema: dict[str, Any]) -> str:
    """Return "valid", or how a reply breaks its schema."""
    try:
        Draft202012Validator(schema).validate(json.loads(text, strict=False))
    except ValueError:
        return "no JSON"
    except ValidationError:
        return "breaks its schema"
    return "valid"


def main() -> None:
    """Ask until enough replies have ended, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--calls", type=int, default=300, help="structured replies at least")
    parser.add_argument("--temperature", type=float, default=0.1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        flags: dict[str, Any] = {"data": Path(scratch) / "data", "reasoner": "llm"}
        flags |= {"llm_url": arguments.url, "llm_temperature": arguments.temperature}
        flags |= {"llm_key": arguments.key} if arguments.key else {}
        for name in ("xpay", "library"):
            run_ingest(
                [EXAMPLES / name], name, profile=name, tenant="default", acl="", prune=False,
                flags=flags, quiet=True,
            )  # fmt: skip
        settings, _ = load_settings(flags)
        chat, warning = open_chat(settings)
        if chat is None:
            sys.exit(warning)
        recording = Recording(chat)
        with Session(settings) as session:
            session._chat = (recording, "")
            rounds = 0
            while sum(_main_counts(recording).values()) < arguments.calls:
                rounds += 1
                for collection, question in (*PLAIN, *MULTI, *REFUSED):
                    # every round another user, so that no reply comes from the same cache
                    caller = AuthContext(tenant="default", user=f"round{rounds}")
                    session.ask(question, caller, collection)
    _print(recording, arguments)


def _main_counts(recording: Recording) -> Counter[str]:
    return Counter({name: n for name, n in recording.counts.items() if ": " not in name})


def _print(recording: Recording, arguments: argparse.Namespace) -> None:
    counts = _main_counts(recording)
    ended = counts["valid"] + counts["no JSON"] + counts["breaks its schema"]
    share = counts["valid"] / ended if ended else 0.0
    print(f"{recording.name}, temperature {arguments.temperature}")
    print(f"{sum(counts.values())} structured replies: {dict(counts)}")
    print(f"valid among those that ended: {counts['valid']} of {ended} ({share:.1%})")
    for name, count in sorted(recording.counts.items()):
        if ": " in name:
            print(f"  {name} {count}")
    if arguments.json:
        arguments.json.write_text(json.dumps(recording.counts, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
