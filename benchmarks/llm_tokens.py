"""Tokens spent on one question, by the rules and with a chat model.

python -m benchmarks.llm_tokens [--url URL] [--json OUT]. With --url the model of that server
decides, and its own tokens are counted. Without, a stand-in decides: it copies from its prompt what
a sensible model might choose, and its tokens are estimated at four bytes each.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from cli.ingest import run_ingest
from core.auth import AuthContext
from core.language.tokens import estimate_tokens
from core.settings import load_settings
from graph.session import Session
from models.chat.guarded import GuardedChat
from models.chat.open_chat import open_chat
from models.chat.types import Capabilities, ChatModel

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PLAIN = (
    ("xpay", "What is the default timeout of the order query API?"),
    ("xpay", "退款接口的 timeout 最大是多少?"),
    ("xpay", "Who maintains the refund API?"),
    ("library", "When is the library open?"),
    ("library", "Какая книга объясняет, как горит свеча?"),
    ("library", "How many books may I borrow?"),
)
MULTI = (
    ("xpay", "XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?"),
    (
        "xpay",
        "What is the maximum timeout of the XPay refund API, who maintains it,"
        " and have there been complaints recently?",
    ),
    ("library", "When is the library open, and how many books may I borrow?"),
)
REFUSED = (
    ("xpay", "How many complaints did YPay receive about its refund timeout?"),
    ("library", "Who won the sailing regatta in Lisbon in 1974?"),
)
WANTS = "text"
LEAST_SHARE = 0.3  # of a question's words, that evidence must hold to answer it


class CopyingModel(BaseChatModel):
    """Decide as a sensible model would, by copying from the prompt."""

    @property
    def _llm_type(self) -> str:
        return "copying"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        reply = _reply(str(messages[-1].text))
        read = sum(estimate_tokens(str(message.text)) for message in messages)
        written = estimate_tokens(reply)
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        message = AIMessage(reply, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _reply(prompt: str) -> str:
    question = _inside(prompt, "question")
    evidence = re.findall(r"<evidence n=[^>]*>\n?(.*?)\n?</evidence>", prompt, re.DOTALL)
    task = re.search(r"Task: ([A-Z]+)", prompt)
    match task.group(1) if task else "":
        case "UNDERSTAND":
            parts = [part for part in re.split(r"(?<=[??])|, (?=who|and have|and how)", question)]
            parts = [part.strip() for part in parts if part and part.strip()]
            return json.dumps(
                {
                    "standalone": question,
                    "kind": "multi" if len(parts) > 1 else "plain",
                    "intent": "fact",
                    "parts": [{"text": part, "wants": WANTS} for part in parts],
                },
                ensure_ascii=False,
            )
        case "PLAN":
            tools = re.findall(r"^([a-z_]+): ", _inside(prompt, "tools"), re.MULTILINE)
            parts = _inside(prompt, "parts").splitlines()
            return json.dumps({"questions": _planned(tools[:2], parts)}, ensure_ascii=False)
        case "GRADE":
            asked = _words(question)
            shares = [len(asked & _words(text)) / max(1, len(asked)) for text in evidence]
            least = max(LEAST_SHARE, max(shares) - 0.1)
            grades = {
                f"e{n}": 3 if share >= least else 1 for n, share in enumerate(shares, start=1)
            }
            return json.dumps(grades)
        case "REWRITE":
            tools = re.findall(r"^([a-z_]+): ", _inside(prompt, "tools"), re.MULTILINE)
            words = " ".join(reversed(question.strip("?？").split()))
            return json.dumps({"tools": tools[:1], "query": words}, ensure_ascii=False)
        case _:
            asked = _words(question)
            found = [
                (len(asked & _words(sentence)), sentence.strip(), number)
                for number, text in enumerate(evidence, start=1)
                for sentence in re.findall(r"[^.。\n]+[.。]", text)
            ]
            claims = [{"text": max(found)[1], "sources": [max(found)[2]]}] if found else []
            return json.dumps({"claims": claims}, ensure_ascii=False)


def _planned(tools: list[str], parts: list[str]) -> list[dict[str, Any]]:
    """Return a question for each part; the only one is not written out again."""
    texts = [part.split(". ", 1)[-1] for part in parts]
    questions = [
        {"id": f"q{n}", "text": text, "deps": [], "slot": "", "wants": WANTS}
        for n, text in enumerate(texts, start=1)
    ]
    searches = [{"tools": tools, "query": text} for text in texts]
    if len(parts) == 1:
        return [{"id": "q1", **searches[0]}]
    return [one | search for one, search in zip(questions, searches, strict=True)]


def _inside(prompt: str, tag: str) -> str:
    found = re.search(rf"<{tag}[^>]*>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return found.group(1) if found else ""


def _words(text: str) -> set[str]:
    """Return words, and single characters of scripts without blanks."""
    return {word for word in re.findall(r"[一-鿿]|[^\W_]{3,}", text.casefold())}


def spent(session: Session, chat: ChatModel | None, asked: Sequence[tuple[str, str]]) -> list[Any]:
    """Ask the questions and return what each run used."""
    session._chat = (chat, "")
    caller = AuthContext(tenant="default")
    return [session.ask(text, caller, collection).result for collection, text in asked]


def row(kind: str, who: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of some runs."""
    usage = [result["usage"] for result in results]

    def mean(name: str) -> float:
        return round(statistics.mean(item[name] for item in usage), 1)

    return {
        "questions": kind,
        "n": len(usage),
        "reasoner": who,
        "evidence_tokens": round(mean("tokens") - mean("model_tokens"), 1),
        "model_tokens": mean("model_tokens"),
        "model_calls": mean("model_calls"),
        "tool_calls": mean("tool_calls"),
        "degraded": mean("degraded"),
        "refused": sum(result["refused"] for result in results),
    }


def main() -> None:
    """Ask each kind of question by the rules and with a model, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a chat model's server instead of the stand-in")
    parser.add_argument("--json", type=Path, help="write the rows here too")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        flags = {"data": Path(scratch) / "data", "reasoner": "rules"}
        for name in ("xpay", "library"):
            run_ingest(
                [EXAMPLES / name], name, profile=name, tenant="default", acl="", prune=False,
                flags=flags, quiet=True,
            )  # fmt: skip
        settings, _ = load_settings(flags)
        chat, who = _model(arguments.url)
        with Session(settings) as session:
            for kind, asked in (("plain", PLAIN), ("multi-part", MULTI), ("refused", REFUSED)):
                rows.append(row(kind, "rules", spent(session, None, asked)))
                rows.append(row(kind, who, spent(session, chat, asked)))
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for line in rows:
        print("| " + " | ".join(str(line[name]) for name in names) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _model(url: str | None) -> tuple[ChatModel, str]:
    if url is None:
        known = Capabilities(
            kind="in-process", model="copying", structured="json_schema", context=32_768
        )
        return GuardedChat(CopyingModel(), known, load_settings()[0]), "llm (stand-in)"
    chat, warning = open_chat(load_settings({"reasoner": "llm", "llm_url": url})[0])
    if chat is None:
        sys.exit(warning)
    return chat, f"llm ({chat.name})"


if __name__ == "__main__":
    main()
