"""What a group of settings is, and who may change one while a server runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

# Above them a sum of two settings, SQLite or a timeout of the system may overflow.
LARGEST, LONGEST = 10**12, 10**9  # whole numbers; seconds, shares and prices


@dataclass(frozen=True)
class ChangeRule:
    """Say who may change a setting while a server runs.

    `live`: the server takes it over when it reads its settings again. `command`: what
    becomes of the value that a command gives which the server runs: it is the command's own, it is
    refused when it differs from the server's, or it is ignored.
    """

    live: bool
    command: Literal["own", "refused", "ignored"]


LIVE = ChangeRule(live=True, command="own")
LIVE_IGNORED = ChangeRule(live=True, command="ignored")
AT_START = ChangeRule(live=False, command="own")
REFUSED = ChangeRule(live=False, command="refused")
IGNORED = ChangeRule(live=False, command="ignored")


class Group(BaseModel):
    """Hold the settings of one topic; a field's own `ChangeRule` stands in its annotation."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    CHANGES: ClassVar[ChangeRule] = AT_START

    @field_validator("*")
    @classmethod
    def _within_bounds(cls, value: Any) -> Any:  # noqa: ANN401 - any setting
        most = LARGEST if isinstance(value, int) else LONGEST
        if isinstance(value, int | float) and abs(value) > most:
            raise PydanticCustomError("too_large", "Input should be at most {most}", {"most": most})
        return value


OneGroup = TypeVar("OneGroup", bound=Group)


def group_field(kind: type[OneGroup]) -> OneGroup:
    """Return the field of a group, whose defaults stand until others are given."""
    made: Any = kind  # type checkers do not see that each of its fields has a default
    found: OneGroup = Field(default_factory=made)
    return found
