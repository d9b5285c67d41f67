"""A profile: how one kind of collection is read, searched and described, as YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from core.errors import CallerError
from core.settings import FIELDS, by_name, renamed_with_notes
from core.types import FrozenModel

BUILT_IN = Path(__file__).resolve().parent.parent / "profiles"
BaseTool = Literal["search", "search_vector", "search_text", "query_records"]
ChunkKind = Literal["text", "code", "table", "annotation", "record"]


class ToolProfile(FrozenModel):
    """Rename and scope one tool.

    `purpose` and `not_for` are what the planner reads; `examples` are questions it serves, in any
    language. `sources` are shell patterns over a document's source ("docs/*"), `kinds` the kinds of
    chunks that it finds, such as annotations alone.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{2,40}$")
    base: BaseTool = "search"
    purpose: str = Field(min_length=10, max_length=600)
    not_for: list[str] = Field(default_factory=list)
    examples: list[str] = Field(default_factory=list)
    sources: list[str] = Field(default_factory=list)
    kinds: list[ChunkKind] = Field(default_factory=list)

    @model_validator(mode="after")
    def _searches_kinds(self) -> Self:
        if self.kinds and self.base == "query_records":
            raise ValueError("kinds narrow a search; query_records finds records alone")
        return self


class Profile(FrozenModel):
    """Describe one kind of collection: setting overrides and the tools the planner may use."""

    name: str = Field(pattern=r"^[\w.-]{1,64}$")
    description: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    tools: list[ToolProfile] = Field(default_factory=list)

    @field_validator("settings")
    @classmethod
    def _check_names(cls, settings: dict[str, Any]) -> dict[str, Any]:
        found = by_name(settings)
        if unknown := sorted(set(found) - set(FIELDS) | set(found) & {"data"}):
            raise ValueError(f"unknown or fixed settings: {', '.join(unknown)}")
        return found

    @field_validator("tools")
    @classmethod
    def _unique(cls, tools: list[ToolProfile]) -> list[ToolProfile]:
        names = [tool.name for tool in tools]
        if len(set(names)) != len(names):
            raise ValueError("tool names must differ")
        return tools


def built_in_profiles() -> list[str]:
    """Return the names of the profiles that come with Carrel."""
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def load_profile(name_or_path: str, placed: Callable[[Path], Path] = lambda path: path) -> Profile:
    """Read a built-in profile by name, or any profile by the path of its YAML file.

    `placed` says where a path leads.
    """
    path = BUILT_IN / f"{name_or_path}.yaml"
    if name_or_path.endswith((".yaml", ".yml")) or "/" in name_or_path:
        path = placed(Path(name_or_path).expanduser())
    if not path.is_file():
        raise CallerError(
            "a profile is a built-in name or the path of a YAML file",
            value=name_or_path,
            hint=f"built-in: {', '.join(built_in_profiles())}",
        )
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if isinstance(found, dict) and isinstance(given := found.get("settings"), dict):
            found["settings"] = dict(renamed_with_notes(given))
        return Profile.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CallerError(
            f"profile {path.name}: {place}: {first['msg']}", hint="correct the file"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise CallerError(
            f"profile {path.name} is not valid YAML", value=str(error), hint="correct the file"
        ) from None
