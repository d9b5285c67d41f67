"""Every number and choice in one place, validated, with where each value came from.

Precedence: flag > environment (`CARREL_…`) > settings file > profile > mode > default.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, model_validator

from core.budget import Budget
from core.environment import PREFIX, variables
from core.errors import CallerError
from core.fields.budget import BudgetFields
from core.fields.caching import CacheFields
from core.fields.checking import CheckFields
from core.fields.conversations import ConversationFields
from core.fields.deciding import DecidingFields
from core.fields.evaluation import EvaluationFields
from core.fields.guarding import GuardFields
from core.fields.ingest import IngestFields
from core.fields.keeping import KeepingFields
from core.fields.library import LibraryFields
from core.fields.links import LinkFields
from core.fields.llm import LlmFields
from core.fields.llm_server import LlmServerFields
from core.fields.models import ModelFields
from core.fields.places import PlaceFields
from core.fields.planning import PlanningFields
from core.fields.protocols import ProtocolFields
from core.fields.retrieval import RetrievalFields
from core.fields.segments import SegmentFields
from core.fields.selection import SelectionFields
from core.fields.serving import ServingFields
from core.fields.studio import StudioFields
from core.settings_file import file_values, mode_values

PASSWORD = re.compile(r"//[^/]*@")  # of a URL
Origin = Literal["flag", "environment", "file", "profile", "mode", "default"]


class Settings(  # pydantic lists the fields of the last base first
    ProtocolFields,
    ConversationFields,
    GuardFields,
    CacheFields,
    ServingFields,
    StudioFields,
    EvaluationFields,
    BudgetFields,
    PlanningFields,
    LlmServerFields,
    LlmFields,
    DecidingFields,
    SelectionFields,
    LinkFields,
    SegmentFields,
    CheckFields,
    RetrievalFields,
    KeepingFields,
    LibraryFields,
    IngestFields,
    ModelFields,
    PlaceFields,
    BaseModel,
):
    """Hold all settings; each field's description is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    if TYPE_CHECKING:  # every field has a default, which type checkers do not see in `Field`

        def __init__(self, **values: object) -> None: ...

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(
                f"chunk_overlap ({self.chunk_overlap}) must be below chunk_size ({self.chunk_size})"
            )
        if not self.grade_related <= self.grade_partly <= self.grade_answers:
            raise ValueError("grade_related <= grade_partly <= grade_answers must hold")
        return self

    def budget(self) -> Budget:
        """Return the budget of one run."""
        return Budget(
            steps=self.budget_steps,
            tool_calls=self.budget_tool_calls,
            tokens=self.budget_tokens,
            seconds=self.budget_seconds,
            cost=self.budget_cost,
            answer_share=self.budget_answer_share,
        )


def _of_type(kind: object) -> frozenset[str]:
    fields = Settings.model_fields.items()
    return frozenset(
        name for name, one in fields if kind in (one.annotation, *get_args(one.annotation))
    )


LISTS = _of_type(list[str])  # given with commas between, but for those of a profile
SECRETS = _of_type(SecretStr)
PATHS = _of_type(Path)


def environment_values() -> dict[str, str]:
    """Return the settings that the environment gives, by setting name."""
    names = {name.lower() for name in Settings.model_fields}
    found = {}
    for key, value in variables().items():
        name = key.removeprefix(PREFIX).lower()
        if key.startswith(PREFIX) and name in names:
            found[name] = value
    return found


def load_settings(
    flags: dict[str, Any] | None = None,
    profile: dict[str, Any] | None = None,
    *,
    file: str | None = None,
) -> tuple[Settings, dict[str, Origin]]:
    """Merge the sources and say where each value came from.

    `file` is the path of a settings file, None for that of `CARREL_SETTINGS`, "" for none and no
    mode either.
    """
    given = _with_lists({name: value for name, value in (flags or {}).items() if value is not None})
    known = Settings.model_fields
    sources: dict[Origin, dict[str, Any]] = {
        "flag": given,
        "environment": _with_lists(dict(environment_values())),
        "file": {} if file == "" else file_values(known, file),
        "profile": profile or {},
    }
    modes = [source["serve_mode"] for source in sources.values() if "serve_mode" in source]
    sources["mode"] = mode_values(str(modes[0]), known) if modes and file != "" else {}
    merged: dict[str, Any] = {}
    origins: dict[str, Origin] = dict.fromkeys(known, "default")
    for origin in reversed(sources):
        merged |= sources[origin]
        origins |= dict.fromkeys(sources[origin], origin)
    try:
        return Settings(**merged), origins
    except ValidationError as error:
        raise _setting_error(error, origins, merged) from None


def _with_lists(given: dict[str, Any]) -> dict[str, Any]:
    for name in LISTS & given.keys():
        if isinstance(text := given[name], str):
            given[name] = [part for one in text.split(",") if (part := one.strip())]
    return given


def _setting_error(
    error: ValidationError, origins: dict[str, Origin], merged: dict[str, Any]
) -> CallerError:
    first = error.errors()[0]
    advice = "`carrel config` lists every setting and its range"
    if not first["loc"]:  # a rule that several settings break together
        return CallerError(first["msg"].removeprefix("Value error, "), hint=advice)
    name = str(first["loc"][0])
    where: str = origins.get(name, "profile")
    where = {"environment": PREFIX + name.upper(), "file": "settings file"}.get(where, where)
    value = merged.get(name)
    if name in SECRETS:
        value = None
    elif isinstance(value, str):
        value = PASSWORD.sub("//…@", value)
    return CallerError(
        f"setting '{name}' ({where}): {first['msg'].removeprefix('Value error, ')}",
        value=value,
        hint=advice,
    )
