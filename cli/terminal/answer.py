"""How an answer reaches the terminal: sentence by sentence, then its sources."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from cli.terminal.output import stderr, stdout, warn
from core.trace import StreamEvent
from core.types import place_of


class AnswerPrinter:
    """Print verified sentences to stdout while they are written, and the rest when the run ends.

    A model's unverified draft goes to stderr only, dimmed, when the setting `stream` asks for it.
    """

    def __init__(self) -> None:
        """Begin with an empty answer."""
        self._out, self._err = stdout(), stderr()
        self._shown = ""
        self._drafting = False

    def show(self, event: StreamEvent) -> None:
        """Print one piece of the answer, or of its draft."""
        if event.kind == "token":
            self._drafting = True
            self._err.print(f"[dim]{escape(event.text)}[/dim]", end="")
            return
        self._end_draft()
        if event.kind == "rules":
            self._err.print(f"[dim]by the rules, while the model reads: {escape(event.text)}[/dim]")
            return
        self._shown += event.text
        self._out.print(escape(event.text), end="", markup=True)
        self._out.file.flush()

    def finish(self, result: dict[str, Any]) -> None:
        """Print what was not shown yet, the sources, the warnings and what it took."""
        self._end_draft()
        text = result["answer"]
        if asked := result.get("clarification"):
            text = "\n".join(clarification_lines(asked))
        if self._shown and text.startswith(self._shown):
            text = text.removeprefix(self._shown)
        elif self._shown:
            self._out.print("\n")
        self._out.print(escape(text), style="red" if result["refused"] else None)
        self._shown = ""
        print_sources(result)

    def _end_draft(self) -> None:
        if self._drafting:
            self._err.print()
        self._drafting = False


def clarification_lines(asked: dict[str, Any]) -> list[str]:
    """Return a clarifying question with its options, numbered as a reply may name them."""
    options = [f"  {place}. {option}" for place, option in enumerate(asked["options"], start=1)]
    return [asked["question"], *options]


def print_answer(result: dict[str, Any]) -> None:
    """Print an answer with its sources, or a refusal, and what it took."""
    AnswerPrinter().finish(result)


def print_sources(result: dict[str, Any]) -> None:
    """Print the numbered sources, the warnings and what the run took."""
    out = stdout()
    titles = {item["chunk_id"]: item for item in result["evidence"]}
    numbers: dict[str, int] = {}
    for claim in result["claims"]:
        for citation in claim["citations"]:
            chunk = citation["chunk_id"]
            if chunk in numbers:
                continue
            numbers[chunk] = len(numbers) + 1
            item = titles.get(chunk, {})
            book = item.get("metadata", {}).get("book", {}).get("title")
            place = place_of(item.get("section") or "", item.get("page"))
            parts = (item.get("collection"), citation["source"], book, place)
            where = " · ".join(part for part in parts if part)
            out.print(f"[dim]\\[{numbers[chunk]}] {escape(where)}[/dim]")
    for warning in result["warnings"]:
        warn(warning)
    out.print(
        f"[dim]run {result['run_id']} · {result['stop_reason']} · {usage_text(result['usage'])}"
        "[/dim]"
    )


def usage_text(usage: dict[str, Any]) -> str:
    """Return what a run took, in a line."""
    parts = [f"{usage['steps']} steps", f"{usage['tool_calls']} tool calls"]
    if calls := usage["model_calls"]:
        parts.append(f"{calls} model calls with {usage['model_tokens']} tokens")
    if degraded := usage["degraded"]:
        parts.append(f"{degraded} decided by the rules instead")
    return f"{', '.join(parts)}, {usage['ms']:.0f} ms"
