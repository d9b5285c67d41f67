"""A run for the terminal: its answer as it is written, its steps, its path and its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from cli.terminal.output import plain_table, stderr, stdout, warn
from core.errors import shorten
from core.trace import Step, StreamEvent
from core.types import Plan, address_of, place_of
from display.runs import visits
from display.steps import step_name, step_text, tool_name


class AnswerPrinter:
    """Print verified sentences to stdout while they are written, and the rest when the run ends.

    A model's unverified draft goes to stderr only, dimmed, when the setting `stream` asks for it.
    """

    def __init__(self) -> None:
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
            metadata = item.get("metadata") or {}
            source = address_of(citation["source"], item.get("section") or "", metadata)
            parts = (item.get("collection"), source, book, place)
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


COLOURS = {
    "understand": "cyan",
    "plan": "cyan",
    "retrieve": "blue",
    "grade_documents": "magenta",
    "extract": "magenta",
    "compose_query": "cyan",
    "merge_hits": "magenta",
    "stop_condition": "yellow",
    "rewrite": "yellow",
    "clarify": "yellow",
    "generate": "green",
    "verify": "green",
    "refuse": "red",
}


NAME_CELLS = 21  # of a terminal; most names of steps fit
HIDDEN = {"language", "match"}  # the same for every call of a run


def step_line(step: Step, language: str) -> str:
    """Describe one step on a line, for printing a run as it goes."""
    colour = COLOURS.get(step.node, "white")
    name = step_name(step.node, language)
    padded = name + " " * (NAME_CELLS - cell_len(name))
    place = f"[dim]{step.question_id:>3}[/dim]" if step.question_id else "   "
    text = escape(shortened(step_text(step, language), 160))
    return f"  [{colour}]{padded}[/{colour}] {place} {text}"


def step_table(trail: Sequence[Step], language: str) -> Table:
    """Return all steps as a table: what was decided, why, and how long it took."""
    table = plain_table("#", "step", "for", "what it did", "ms")
    for number, step in enumerate(trail, start=1):
        text = shortened(step_text(step, language), 280)
        table.add_row(
            str(number),
            f"[{COLOURS.get(step.node, 'white')}]{step_name(step.node, language)}[/]",
            step.question_id,
            escape(f"{text} (by the rules: {step.degraded})" if step.degraded else text),
            f"{step.ms:.1f}",
        )
    return table


def call_table(trail: Sequence[Step], language: str) -> Table:
    """Return all tool calls as a table: what was asked, what was enforced, what came back."""
    table = plain_table("#", "tool", "asked", "enforced", "evidence (best first)")
    for number, step in enumerate(trail, start=1):
        if not step.tool:
            continue
        best = ", ".join(f"{key[:8]} {score:.2f}" for key, score in step.evidence[:3])
        more = f" +{len(step.evidence) - 3}" if len(step.evidence) > 3 else ""
        table.add_row(
            str(number),
            escape(tool_name(step.tool, language)),
            escape(shortened(_arguments(step.arguments), 160)),
            escape(filter_text(step.auth_filter)),
            best + more,
        )
    return table


def model_table(trail: Sequence[Step]) -> Table:
    """Return all calls of the chat model as a table; a call's number is its step's."""
    table = plain_table(
        "#", "decision", "outcome", "prompt", "read", "held", "written", "first", "ms"
    )
    for number, step in enumerate(trail, start=1):
        for place, call in enumerate(step.calls):
            outcome = f"{call.outcome}: {call.error}" if call.error else call.outcome
            table.add_row(
                "" if place else str(number),
                call.verb,
                escape(shortened(outcome, 90)),
                call.prompt_hash,
                str(call.prompt_tokens),
                str(call.cached_tokens),
                str(call.completion_tokens),
                f"{call.first_ms:.0f}",
                f"{call.ms:.0f}",
            )
    return table


def stage_table(trail: Sequence[Step]) -> Table:
    """Return the stages of all searches as a table; a search's number is its step's."""
    table = plain_table("#", "stage", "in", "out", "ms", "note")
    for number, step in enumerate(trail, start=1):
        for place, stage in enumerate(step.stages):
            table.add_row(
                "" if place else str(number),
                stage.name,
                str(stage.before),
                str(stage.after),
                f"{stage.ms:.1f}",
                escape(shortened(stage.note, 120)),
            )
    return table


def path_line(trail: Sequence[Step]) -> str:
    """Return the nodes of a run in the order of its visits."""
    return " → ".join(visits(trail))


def plan_tree(plan: Plan) -> Tree:
    """Return the questions of a plan, each below the last of those it waits for."""
    tree = Tree("", hide_root=True)
    branches: dict[str, Tree] = {}
    waiting = list(plan.questions)
    while waiting:
        ready = [one for one in waiting if all(name in branches for name in one.deps)]
        for one in ready or waiting[:1]:
            above = [branch for name, branch in branches.items() if name in one.deps]
            title = shorten(one.id if one.slot is None else f"{one.id} → {one.slot}")
            joined = f" [dim]after {escape(shorten(', '.join(one.deps)))}[/dim]" * (len(above) > 1)
            text = f"[cyan]{escape(title)}[/cyan]{joined} {escape(shorten(one.text))}"
            branches[one.id] = (above[-1] if above else tree).add(text)
            waiting.remove(one)
    return tree


def filter_text(auth_filter: dict[str, Any]) -> str:
    """Describe an enforced filter in a few words."""
    parts = [f"tenant={auth_filter.get('tenant')}"]
    if roles := auth_filter.get("roles"):
        parts.append("roles=" + ",".join(roles))
    if sources := auth_filter.get("sources"):
        parts.append("sources=" + ",".join(sources))
    if auth_filter.get("allowed_sources") is not None:
        parts.append("allowed=" + ",".join(auth_filter["allowed_sources"]))
    return " ".join(parts)


def _arguments(arguments: dict[str, Any]) -> str:
    shown = []
    for name, value in arguments.items():
        if name == "where":
            shown += [f"{c['field']} {c['op']} {c['value']}" for c in value]
        elif name in ("query", "chunk_id"):
            shown.append(f"“{value}”")
        elif name not in HIDDEN and value not in (None, "", []):
            shown.append(f"{name}={value}")
    return ", ".join(shown)


def shortened(text: str, limit: int) -> str:
    """Cut a text to one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
