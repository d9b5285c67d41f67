"""Plan files: a plan as JSON, checked before any of it is used; errors name the line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from core.errors import CallerError, shorten
from core.language.detect import detect_language
from core.operations import OPERATIONS, AnyOperation, Merge, operation_adapter
from core.settings import Settings
from core.types import FrozenModel, Plan, SubQuestion, ToolSpec
from reasoning.planning.compiler import compiled
from reasoning.planning.rules import HINT, OPERATION_RULES, RULES
from reasoning.planning.slots import Facts, Rule, describe_problem, problems

FILE_DEPTH = 16  # how deep lists and objects of a plan file may be nested; chosen, not measured

MOST_DIGITS = 18
# A string that never ends is taken to the end of the text, so that no text is scanned twice.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|(?P<begins>[\[{])|(?P<ends>[\]}])|(?P<constant>-?(?:NaN|Infinity))'
    r"|(?P<real>-?\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))|(?P<integer>-?\d+)",
    re.DOTALL,
)


class Located(dict[str, Any]):
    """Hold a JSON object and its line, counted from 1."""

    line: int = 1


class LineError(CallerError):
    """Report what is wrong on one line of a file."""

    def __init__(self, line: int, rule: str) -> None:
        """Begin with the line."""
        super().__init__(f"line {line}: {rule}")
        self.line = line


def read_json(text: str) -> Any:  # noqa: ANN401 - whatever the text holds
    """Parse JSON nested at most FILE_DEPTH deep; objects are Located. Raises LineError."""
    lines = iter(_lines_of_objects(text))

    def located(pairs: list[tuple[str, Any]]) -> Located:
        found = Located()
        found.line = next(lines)
        for name, value in pairs:
            if name in found:
                rule = f"the key {json.dumps(name[:64])} stands twice in one object"
                raise LineError(found.line, rule)
            found[name] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=located)
    except json.JSONDecodeError as error:
        rule = f"this is no JSON: {error.msg[0].lower()}{error.msg[1:]} (column {error.colno})"
        raise LineError(error.lineno, rule) from None


def _lines_of_objects(text: str) -> list[int]:
    """Return the lines on which objects begin, in the order in which they end.

    Raises LineError where the text is nested too deep or a number is none that can be kept.
    """
    line, counted = 1, 0
    begun: list[int] = []
    ended: list[int] = []
    for token in _TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        kind, value, counted = token.lastgroup, token.group(), token.start()
        if kind == "begins":
            begun.append(line)
            if len(begun) > FILE_DEPTH:
                rule = f"lists and objects are nested at most {FILE_DEPTH} deep"
                raise LineError(line, rule)
        elif kind == "ends" and begun:
            start = begun.pop()
            ended += [start] if value == "}" else []
        elif kind == "constant":
            raise LineError(line, f"{value} is no number of JSON")
        elif kind == "integer" and len(value) > MOST_DIGITS:
            raise LineError(line, f"a number has at most {MOST_DIGITS} digits, not {len(value)}")
        elif kind == "real" and math.isinf(float(value)):
            raise LineError(line, "a number is finite")
    return ended


FILE_KB = 256  # of the largest plan file that is read; chosen, not measured

READ = ("questions", "operations", "merge", "synth_from")
# What `carrel plan --json` and the result of a run say beside the plan itself: how it was made and
# what became of it, not what it does.
REMARKS = (
    *("kind", "reasoner", "warnings"),
    *("path", "asked", "ran", "slots", "backtracks", "replans"),
)
KIB = 1024
_BRANCHES = {*OPERATIONS, "str", "Reference"}  # of unions: they are no part of a field's name


class PlanFile(FrozenModel):
    """Hold a checked plan and its operations.

    `fixed` says that the operations were given and not compiled: a run does not extend them.
    """

    plan: Plan
    operations: list[AnyOperation]
    fixed: bool = False


Tools = Callable[[], Sequence[ToolSpec]]


def load_plan(path: Path, settings: Settings, tools: Tools) -> PlanFile:
    """Read and check a plan file; raises a CallerError with the line and the rule it breaks.

    `tools` is asked only for a plan that names tools and keeps all other rules.
    """
    text = _text(path)
    try:
        return read_plan(text, settings, tools)
    except LineError as error:
        raise CallerError(f"{path.name}: {error.rule}", hint=HINT) from None


def read_plan(text: str, settings: Settings, tools: Tools) -> PlanFile:
    """Read and check the text of a plan file; raises LineError."""
    found = _object(text)
    entries = _entries(found, "questions")
    steps = _entries(found, "operations") if "operations" in found else None
    plan = Plan(questions=[_question(entry) for entry in entries])
    lines: dict[str | int, int] = {entry["id"]: entry.line for entry in entries}
    facts = Facts(plan, settings)
    _check(RULES, facts, lines, found.line)
    if steps is None:
        merge: Merge = found.get("merge", "union")
        if merge not in get_args(Merge):
            rule = f"merge is union or intersect, not {shorten(merge, 40)}"
            raise LineError(found.line, rule)
        synth_from = _synth_from(found, plan)
        facts = facts._replace(operations=compiled(plan, settings, merge, synth_from))
    else:
        facts = facts._replace(operations=[_operation(entry) for entry in steps])
        lines |= {place: entry.line for place, entry in enumerate(steps)}
        _check(OPERATION_RULES, facts, lines, found.line)
    named = any(question.calls for question in plan.questions)
    if named or any(getattr(operation, "tools", None) for operation in facts.operations):
        facts = facts._replace(tools=tools())
        _check(RULES, facts, lines, found.line)
        if steps is not None:
            _check(OPERATION_RULES, facts, lines, found.line)
    return PlanFile(plan=plan, operations=list(facts.operations), fixed=steps is not None)


def _check(
    rules: Sequence[Rule], facts: Facts, lines: Mapping[str | int, int], otherwise: int
) -> None:
    for problem in problems(rules, facts):
        raise LineError(lines.get(problem.where, otherwise), describe_problem(problem))


def _object(text: str) -> Located:
    if not text.strip():
        raise LineError(1, "the plan is empty")
    found = read_json(text)
    if not isinstance(found, Located):
        raise LineError(1, 'a plan is an object: {"questions": […]}')
    unknown = [name for name in found if name not in (*READ, *REMARKS)]
    if unknown:
        keys = ", ".join(READ)
        raise LineError(found.line, f"a plan has no key '{shorten(unknown[0], 64)}'; keys: {keys}")
    for name in ("merge", "synth_from"):
        if name in found and "operations" in found:
            raise LineError(found.line, f"'{name}' shapes what is compiled; operations stand here")
    return found


def _text(path: Path) -> str:
    if path.is_dir():
        raise CallerError("a plan is a file, this is a folder", value=str(path))
    try:
        with path.open("rb") as file:
            data = file.read(FILE_KB * KIB + 1)
    except OSError as error:
        raise CallerError(
            f"the plan file cannot be read ({error.strerror})",
            value=str(path),
            hint="name a JSON file; `carrel plan QUESTION --json` writes one",
        ) from None
    if len(data) > FILE_KB * KIB:
        raise CallerError(
            f"a plan file has at most {FILE_KB} KiB",
            value=str(path),
            hint="a plan is a few questions; documents are ingested",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CallerError(f"{path.name}: line {line}: a plan file is UTF-8 text") from None


def _entries(found: Located, key: str) -> list[Located]:
    entries = found.get(key)
    if not isinstance(entries, list):
        raise LineError(found.line, f"'{key}' is a list" if key in found else f"'{key}' is missing")
    for place, entry in enumerate(entries, start=1):
        if not isinstance(entry, Located):
            raise LineError(found.line, f"entry {place} of '{key}' is an object")
    return entries


def _question(entry: Located) -> SubQuestion:
    values = dict(entry)
    if "text" in values:
        values.setdefault("query", values["text"])
    if isinstance(values.get("text"), str):
        values.setdefault("language", detect_language(values["text"]))
    try:
        return SubQuestion.model_validate(values, strict=True)
    except ValidationError as error:
        name = f" '{shorten(str(entry['id']), 64)}'" if "id" in entry else ""
        raise LineError(entry.line, f"question{name}: {schema_error(error)}") from None


def _operation(entry: Located) -> AnyOperation:
    try:
        return operation_adapter.validate_python(entry, strict=True)
    except ValidationError as error:
        raise LineError(entry.line, f"operation: {schema_error(error)}") from None


def _synth_from(found: Located, plan: Plan) -> list[str]:
    names = found.get("synth_from", [])
    known = [question.id for question in plan.questions]
    if not isinstance(names, list) or any(name not in known for name in names):
        raise LineError(found.line, f"synth_from is a list of questions: {', '.join(known)}")
    return names


def schema_error(error: ValidationError) -> str:
    """Say the first thing that does not fit: the field, what it should be, what it is."""
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"] if part not in _BRANCHES]
    if first["type"] == "extra_forbidden":
        return f"there is no key '{shorten(place[-1], 64)}' here"
    if first["type"] == "missing":
        return f"'{place[-1]}' is missing"
    if first["type"] == "union_tag_invalid":
        return (
            f"there is no operation {shorten(first['ctx']['tag'], 64)}; operations: "
            + ", ".join(OPERATIONS)
        )
    if first["type"] == "union_tag_not_found":
        return "'op' is missing"
    message = first["msg"][0].lower() + first["msg"][1:].partition(" or instance of ")[0]
    return f"{'.'.join(place) or 'entry'}: {message} (it is {shorten(repr(first['input']), 60)})"
