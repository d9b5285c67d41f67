"""What the steps of a run and the operations of a plan did, in plain words of a language."""

from __future__ import annotations

import re
from typing import Any

from core.errors import shorten
from core.language.cues import cues
from core.operations import OPERATIONS, AnyOperation, Reference
from core.trace import Step
from core.types import StopReason

NUMBER = re.compile(r"\d+(?:\.\d+)?")
NAMED = rf"({'|'.join(OPERATIONS)}) \w+"
CODED = re.compile(
    rf"(?:next )?{NAMED}(?:, {NAMED})*|\w+ = [A-Z_]+\(.*\)"
)  # how nodes write operations
SHOWN_CHARS = 300  # of one part of an operation, chosen
REASON = re.compile(rf"^(?:{'|'.join(StopReason)}): ")


def step_name(node: str, language: str) -> str:
    """Return what a node does; its name where that is unknown."""
    return cues(language).known.steps["nodes"].get(node, node.replace("_", " "))


def tool_name(tool: str, language: str) -> str:
    """Return where a tool looks; a profile's own tool is known by its name."""
    name: str = cues(language).known.messages["tools"].get(tool, tool.replace("_", " "))
    return name


def step_text(step: Step, language: str) -> str:
    """Say what a step did and why on one line, without the names of the code."""
    decision = _phrases(step.decision, language)
    reason = _phrases(step.reason, language)
    if step.tool:
        decision = f"{tool_name(step.tool, language)}: {decision}"
        where = step.arguments.get("where", [])
        asked = [f"{one['field']} {one['op']} {one['value']}" for one in where]
        if query := step.arguments.get("query"):
            asked.append(f"“{query}”")
        reason = ", ".join(asked) or reason
    elif step.node == "plan" and not decision:
        names = dict.fromkeys(re.findall(NAMED, step.decision))
        reason = ""  # the same operations in full
        decision = ", ".join(cues(language).known.steps["operations"][name] for name in names)
    elif step.node == "choose_action":
        decision = step_name(step.decision, language)
    elif step.node == "refuse" or (step.node == "understand" and reason):
        decision = ""  # the reason says it in words
    return " – ".join(filter(None, (decision, reason)))


def operation_text(operation: AnyOperation, language: str) -> str:
    """Say what an operation will do: for which question, with which text, where."""
    given = operation.model_dump()
    questions = given.get("questions") or [given.get("question")]
    query = given.get("template") or given.get("query")
    parts = [
        cues(language).known.steps["operations"][operation.op],
        ", ".join(filter(None, questions)),
        "" if not query or isinstance(getattr(operation, "query", ""), Reference) else f"“{query}”",
        f"{{{given['slot']}}}" if "slot" in given else "",
        ", ".join(dict.fromkeys(tool_name(one, language) for one in given.get("tools", []))),
    ]
    return " · ".join(shorten(part, SHOWN_CHARS) for part in parts if part)


def shown_step(step: Step, language: str) -> dict[str, Any]:
    """Return a step as JSON with its `name` and `text` in plain words."""
    words = {"name": step_name(step.node, language), "text": step_text(step, language)}
    return step.model_dump(mode="json") | words


def _phrases(text: str, language: str) -> str:
    """Return a note of a node in words of the language, as far as they are known."""
    known = cues(language).known.steps["phrases"]
    parts = []
    for part in REASON.sub("", text).split("; "):
        if CODED.fullmatch(part):
            continue
        phrase = known.get(NUMBER.sub("{}", part), "")
        parts.append(phrase.format(*NUMBER.findall(part)) if phrase else part)
    return "; ".join(parts)
