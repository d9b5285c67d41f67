"""Runs: answer, why it ended, plan and path; and which view a notebook has of each type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from importlib.resources import files
from itertools import groupby, pairwise
from typing import Any
from xml.etree import ElementTree

from core.language.detect import detect_language
from core.trace import RunRecord, Step
from core.types import Answer, Evidence, Plan, StopReason
from display.evidence import (
    EvidenceList,
    answer_text,
    answer_view,
    cited_passages,
    evidence_view,
    source_lines,
)
from display.html import (
    STYLE,
    Markup,
    View,
    bullets,
    clean,
    element,
    escaped,
    facts,
    folded,
    joined,
    line,
    opening,
    table,
)
from display.plan_drawing import outcome_of, plan_of, plan_view, wrapped
from display.steps import step_name, step_text

START, END = "__start__", "__end__"  # as LangGraph names them
LISTED = 60  # visits that the description lists
THICK = "2.6"
SIZES = (
    (13.0, 1),
    (10.5, 2),
    (9.0, 3),
    (8.0, 3),
)  # of the letters in a box, and how many lines of them
PADDING = 16.0
SVG = "{http://www.w3.org/2000/svg}"

ElementTree.register_namespace("", SVG[1:-1])


def visits(trail: Iterable[Step]) -> list[str]:
    """Return the nodes in the order in which they were visited.

    Several tool calls or operations side by side are one visit; no node follows itself.
    """
    return [node for node, _ in groupby(step.node for step in trail)]


def graph_drawing(language: str = "") -> Markup:
    """Return the drawing of the graph, kept in graph.svg, without any path, in a language."""
    return _written(_graph(language))


def _written(tree: ElementTree.Element) -> Markup:
    return Markup(ElementTree.tostring(tree, encoding="unicode", short_empty_elements=False))


def _graph(language: str) -> ElementTree.Element:
    text = files("display").joinpath("graph.svg").read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text)
    for part in tree.iter(f"{SVG}g"):
        node = part.get("data-node", "")
        if node not in (START, END):
            _say(part[1], step_name(node, language), float(part[0].get("width", 0)) - PADDING)
    return tree


def _say(text: ElementTree.Element, words: str, room: float) -> None:
    """Write what a node does into its box, on more lines of smaller letters where it is long."""
    for size, most in SIZES:
        lines = wrapped(words, size, room, most)
        if " ".join(lines) == words:
            break
    text.text = None
    for number, part in enumerate(lines):
        given = {"x": text.get("x", ""), "font-size": f"{size:g}"}
        given["dy"] = f"{size * 1.1 if number else -0.55 * size * (len(lines) - 1):g}"
        ElementTree.SubElement(text, f"{SVG}tspan", given).text = part


def path_drawing(run: RunRecord) -> Markup:
    """Mark the path of a run on the graph, with how often it took each arrow.

    A cancelled run has no arrow to the end. A node that the graph no longer has is named in the
    description alone.
    """
    way = [START, *visits(run.trail)]
    if run.result.get("stop_reason") != StopReason.cancelled:
        way.append(END)
    language = detect_language(run.question)
    tree = _graph(language)
    title = "The path of the run"
    tree.set("aria-label", title)
    for tag, text in (("title", title), ("desc", _described(way, language))):
        found = tree.find(f"{SVG}{tag}")
        assert found is not None  # of graph.svg
        found.text = text
    seen, taken = Counter(way), Counter(pairwise(way))
    for part in list(tree):
        ends = part.get("data-from", ""), part.get("data-to", "")
        kind = part.get("class", "")
        if kind == "node":
            _mark_node(part, seen[part.get("data-node", "")], run.trail)
        elif kind == "count" and taken[ends] > 1:
            part.text = f"×{taken[ends]}"
        elif kind == "count":
            tree.remove(part)
        elif taken[ends]:
            _mark_arrow(part, taken[ends])
    return _written(tree)


def _mark_node(part: ElementTree.Element, count: int, trail: Sequence[Step]) -> None:
    if not count:
        return
    part.set("class", "node visited")
    part.set("data-count", str(count))
    box, name = part[0], part[1]
    box.attrib |= {"fill": "currentColor", "fill-opacity": "0.08", "stroke-width": THICK}
    if own := [step for step in trail if step.node == part.get("data-node")]:
        title = ElementTree.Element(f"{SVG}title")
        times = "once" if count == 1 else f"{count} times"
        named = "".join(name.itertext())
        title.text = f"{named}: {times}, {sum(step.ms for step in own):.0f} ms"
        part.insert(0, title)
    if count > 1:
        given = {"class": "count", "font-size": "11", "font-weight": "600"}
        ElementTree.SubElement(name, f"{SVG}tspan", given).text = f" ×{count}"


def _mark_arrow(part: ElementTree.Element, count: int) -> None:
    part.set("class", f"{part.get('class')} visited")
    if part.get("stroke") is None:  # its head
        part.attrib.pop("fill-opacity")
        return
    part.attrib.pop("stroke-dasharray", None)
    part.attrib.pop("stroke-opacity")
    part.attrib |= {"stroke-width": THICK, "data-count": str(count)}


def _described(way: Sequence[str], language: str) -> str:
    ends = {START: "start", END: "end"}
    listed = " → ".join(clean(ends.get(one) or step_name(one, language)) for one in way[:LISTED])
    return f"{listed} and {len(way) - LISTED} more" if len(way) > LISTED else listed


NUMBERS = {"#", "ms"}
SHOWN = 20  # pieces of evidence that a run lists; `evidence_of` has all
USAGE = {
    "steps": "steps",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "model_calls": "model calls",
    "model_tokens": "of them the model's",
    "degraded": "decided by the rules instead",
}


def evidence_of(run: RunRecord) -> EvidenceList:
    """Return the evidence of a run, best first, as a list that shows itself."""
    return EvidenceList(run.evidence)


def run_view(run: RunRecord) -> View:
    """Show a run: answer, cited passages, stop reason, budget used, plan, path, evidence."""
    answer, evidence, plan = run.answer, evidence_of(run), plan_of(run)
    by_chunk = {item.chunk_id: item for item in evidence}
    body = joined(
        element("p", {"class": "question"}, escaped(line(run.question))),
        answer_text(answer),
        *cited_passages(answer.claims, by_chunk),
        facts([("stopped:", answer.stop_reason.value), *_used(run)]),
        bullets(answer.warnings, "warnings"),
        plan_view(plan, outcome_of(run)).body if len(plan.questions) > 1 else Markup(""),
        path_view(run).body,
        _evidence_part(evidence),
    )
    return View(body, _text(run, answer))


def run_plan_view(run: RunRecord) -> View:
    """Show the plan of a run with the values it found and what was not answered."""
    return plan_view(plan_of(run), outcome_of(run))


def path_view(run: RunRecord) -> View:
    """Show the path of a run through the graph, with how often it went each way."""
    way = visits(run.trail)
    drawn = path_drawing(run)
    return View(folded(f"Path: {len(way)} visits", drawn), " → ".join(way))


def steps_view(run: RunRecord) -> View:
    """Show every step of a run: what was decided and why, and how long it took."""
    language = detect_language(run.question)
    rows, lines = [], []
    for number, step in enumerate(run.trail, start=1):
        name, text = step_name(step.node, language), step_text(step, language)
        text += f" (by the rules: {step.degraded})" if step.degraded else ""
        cells = [number, name, step.question_id, text, f"{step.ms:.1f}"]
        rows.append([escaped(cell) for cell in cells])
        lines.append(f"{name} {step.question_id} {line(text)}")
    return View(table(["#", "step", "for", "what it did", "ms"], rows, NUMBERS), "\n".join(lines))


def _evidence_part(evidence: EvidenceList) -> Markup:
    best = EvidenceList(evidence[:SHOWN])
    title = f"Evidence: {len(evidence)}"
    if len(best) < len(evidence):
        title += f", the best {len(best)}"
    return folded(title, evidence_view(best).body, opened=False)


def _used(run: RunRecord) -> list[tuple[str, object]]:
    used: dict[str, Any] = run.result.get("usage") or {}
    counts = [(f"{label}:", used[name]) for name, label in USAGE.items() if used.get(name)]
    return [*counts, ("time:", f"{used.get('ms', 0):.0f} ms"), ("run:", run.run_id)]


def _text(run: RunRecord, answer: Answer) -> str:
    used = ", ".join(f"{name} {value}" for name, value in _used(run))
    warnings = [f"warning: {one}" for one in answer.warnings]
    stopped = f"stopped: {answer.stop_reason.value}, {used}"
    return "\n".join([answer.text, *source_lines(answer.claims), *warnings, stopped])


# Nothing is loaded and nothing runs, whatever a document managed to say.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PAGE = """:root { color-scheme: light dark; }
body { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  margin: 2rem auto; padding: 0 1rem; max-width: 62rem; }
"""


def run_page(run: RunRecord) -> str:
    """Return an HTML page that shows a run and every step of it; it needs no other file."""
    steps = folded(f"Steps: {len(run.trail)}", steps_view(run).body, opened=False)
    return view_page(run.question, run_view(run).body, steps)


def view_page(title: str, *shown: Markup) -> str:
    """Return an HTML page of such views; it needs no other file."""
    head = element(
        "head",
        {},
        opening("meta", {"charset": "utf-8"}),
        opening("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        opening("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, escaped(line(title))),
        element("style", {}, Markup(PAGE + STYLE)),
    )
    page = joined(head, element("body", {}, element("main", {"class": "carrel-view"}, *shown)))
    return f"<!doctype html>\n{element('html', {'lang': 'en'}, page)}\n"


VIEWS: dict[type, Callable[[Any], View]] = {
    Answer: answer_view,
    Evidence: lambda one: evidence_view([one]),
    EvidenceList: lambda found: evidence_view(found, found.notes),
    Plan: plan_view,
    RunRecord: run_view,
}


def show_in_notebooks() -> None:
    """Give the types of `VIEWS` the methods by which IPython and its kin show a value."""
    for kind, view in VIEWS.items():
        _attach(kind, view)


def _attach(kind: type, view: Callable[[Any], View]) -> None:
    def bundle(
        self: object,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
    ) -> dict[str, str]:
        return view(self).bundle(include, exclude)

    kind._repr_html_ = lambda self: view(self).html  # type: ignore[attr-defined]
    kind._repr_mimebundle_ = bundle  # type: ignore[attr-defined]
