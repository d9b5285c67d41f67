"""Gold trajectories: cases in YAML, read and checked before any work; errors name the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from core.errors import CallerError, shorten
from core.types import FrozenModel
from evals.answers import folded
from reasoning.planning.files import LineError, Located, schema_error

LARGEST = 4 << 20  # bytes of a gold file; chosen, not measured
KEYS = "`docs/reference/formats.md` describes the file"


class GoldCall(FrozenModel):
    """Expect a call of a tool, with these arguments among its own."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class GoldPassage(FrozenModel):
    """Expect a document, by id or source; with a quote the passage of it that has these words."""

    document: str = Field(min_length=1)
    quote: str = ""


class GoldTurn(FrozenModel):
    """Hold an earlier question with its answer."""

    question: str
    answer: str


class GoldCase(FrozenModel):
    """Hold one question with what is right about its run.

    `tools` None expects nothing of the calls. Any passage of a list in `evidence` will do, and so
    for the texts in `answer` and in each of `answers`, of which every one is needed. `standalone`
    is a follow-up in full; `plan` are the sub-questions as a plan file has them, `slots` their
    values. `roles` None asks as the caller of the evaluation.
    """

    id: str = ""
    question: str = Field(min_length=1)
    type: str = ""
    language: str = ""
    collection: str = ""
    history: list[GoldTurn] = Field(default_factory=list)
    roles: list[str] | None = None
    user: str = ""
    tools: list[GoldCall] | None = None
    evidence: list[list[GoldPassage]] = Field(default_factory=list)
    answer: list[str] = Field(default_factory=list)
    answers: list[list[str]] = Field(default_factory=list)
    must_refuse: bool = False
    standalone: str = ""
    plan: list[dict[str, Any]] = Field(default_factory=list)
    slots: dict[str, list[str]] = Field(default_factory=dict)
    line: int = 1

    @field_validator("tools", "evidence", "answer", "answers", "slots", mode="before")
    @classmethod
    def _written_short(cls, given: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any YAML
        """Take one for a list of one, a name for its mapping, and a number for its text."""
        if info.field_name == "tools":
            return [{"tool": one} if isinstance(one, str) else one for one in _listed(given)]
        if info.field_name == "evidence":
            groups = [_listed(group) for group in _listed(given)]
            return [
                [{"document": one} if isinstance(one, str) else one for one in group]
                for group in groups
            ]
        if info.field_name == "answer":
            return _texts(given)
        if isinstance(given, dict):
            return {name: _texts(one) for name, one in given.items()}
        return [_texts(one) for one in _listed(given)]

    @model_validator(mode="after")
    def _expects(self) -> GoldCase:
        if self.must_refuse and self.needed:
            raise ValueError("a question that must be refused has no answer")
        if not (self.must_refuse or self.needed or self.evidence or self.tools is not None):
            names = "answer, answers, evidence, tools, must_refuse"
            raise ValueError(f"a case expects something: one of {names}")
        if not all(any(map(folded, group)) for group in self.needed) or not all(self.evidence):
            raise ValueError("what a case expects has words: each answer, each list of evidence")
        return self

    @property
    def needed(self) -> list[list[str]]:
        """Return the texts of which an answer needs one of each list."""
        return [*([self.answer] if self.answer else []), *self.answers]

    @property
    def asked(self) -> str:
        """Return the question as it stands for itself."""
        return self.standalone or self.question


class GoldFile(FrozenModel):
    """Hold the cases of one file with what they are asked of.

    That is a `collection` of the data directory, a sample `corpus`, or `documents` (paths from the
    file's folder) that are ingested under a `profile`. Where an `optional` file's documents are
    not there its cases are skipped.
    """

    path: Path
    collection: str = ""
    corpus: str = ""
    documents: list[str] = Field(default_factory=list)
    profile: str = ""
    optional: bool = False
    cases: list[GoldCase] = Field(min_length=1)

    @field_validator("documents", mode="before")
    @classmethod
    def _paths(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return _listed(given)

    @model_validator(mode="after")
    def _one_place(self) -> GoldFile:
        if sum(map(bool, (self.collection, self.corpus, self.documents))) > 1:
            raise ValueError("a file names one of collection, corpus and documents")
        return self

    def place(self, case: GoldCase) -> str:
        """Return where a case stands, as messages name it."""
        return f"{self.path.name}: line {case.line}"


def read_gold(path: Path) -> GoldFile:
    """Read and check a gold file; raises CallerError with the line and the rule it breaks."""
    try:
        found = _parsed(_read(path))
        found = found if isinstance(found, Located) else _cases(found)
        entries = found.get("cases")
        for place, entry in enumerate(entries if isinstance(entries, list) else [], start=1):
            if not isinstance(entry, Located):
                raise LineError(found.line, f"case {place} is a mapping with a question")
            _check(GoldCase, {**entry, "line": entry.line}, entry)
        given = {**found, "path": path}
        if isinstance(entries, list):
            given["cases"] = [
                {"id": f"case {place}", **one, "line": one.line}
                for place, one in enumerate(entries, start=1)
            ]
        gold: GoldFile = _check(GoldFile, given, found)
    except LineError as error:
        raise CallerError(f"{path.name}: {error.rule}", hint=KEYS) from None
    names: dict[str, int] = {}
    for case in gold.cases:
        if names.setdefault(case.id, case.line) != case.line:
            raise CallerError(
                f"{gold.place(case)}: the id is already used on line {names[case.id]}",
                value=case.id,
                hint="give every case an id of its own",
            )
    return gold


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        rule = f"the gold file cannot be read ({error.strerror})"
        raise CallerError(rule, value=str(path), hint=KEYS) from None
    if len(data) > LARGEST:
        raise CallerError("a gold file has at most 4 MiB", value=str(path), hint="split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LineError(data.count(b"\n", 0, error.start) + 1, "the file must be UTF-8") from None


def _cases(found: Any) -> Located:  # noqa: ANN401 - whatever the file holds
    """Take a list for the cases of a file that says nothing else."""
    if not isinstance(found, list):
        raise LineError(1, "a gold file is a mapping with `cases`, or a list of cases")
    made = Located(cases=found)
    return made


def _check(model: type[Any], given: dict[str, Any], entry: Located) -> Any:  # noqa: ANN401
    names = [name for name in model.model_fields if name not in ("line", "path")]
    if unknown := [name for name in entry if name not in names]:
        rule = f"there is no key '{shorten(unknown[0], 64)}' here; keys: {', '.join(names)}"
        raise LineError(entry.line, rule)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        own = first["type"] == "value_error"
        rule = str(first["ctx"]["error"]) if own else schema_error(error)
        raise LineError(max([entry.line, *_lines(entry, first["loc"])]), rule) from None


def _lines(entry: Any, place: tuple[int | str, ...]) -> Iterator[int]:  # noqa: ANN401
    """Yield the lines of the mappings that a place within an entry goes through."""
    for part in place:
        try:
            entry = entry[part]
        except (KeyError, IndexError, TypeError):
            return
        if isinstance(entry, Located):
            yield entry.line


class _Loader(yaml.SafeLoader):
    """Read mappings with their lines; dates and words such as "no" stay the texts they are."""


_KINDS = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_Loader.yaml_implicit_resolvers = {
    first: [one for one in found if one[0] not in _KINDS or (first in "tTfF" and "bool" in one[0])]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[Located]:
    found = Located()
    found.line = node.start_mark.line + 1
    yield found
    loader.flatten_mapping(node)
    for key, value in node.value:
        name = str(loader.construct_object(key, deep=True))
        if name in found:
            line = key.start_mark.line + 1
            raise LineError(line, f"the key '{name[:64]}' stands twice in one mapping")
        found[name] = loader.construct_object(value, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _parsed(text: str) -> Any:  # noqa: ANN401 - whatever the text holds
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise LineError(mark.line + 1 if mark else 1, f"this is no YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise LineError(1, f"this is no YAML: {error}") from None
    except (RecursionError, ValueError):
        raise LineError(1, "this is nested too deep, or holds no value that can be read") from None


def _listed(given: Any) -> list[Any]:  # noqa: ANN401 - whatever the file holds
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _texts(given: Any) -> list[Any]:  # noqa: ANN401 - whatever the file holds
    return [str(one) if isinstance(one, int | float) else one for one in _listed(given)]
