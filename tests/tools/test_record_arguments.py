"""What a record query is given: a plan written before `by` was a name of its own still holds."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tools.query_records import RecordArguments


@pytest.mark.parametrize("name", ["field", "by"])
def test_groups_are_made_by_a_field(name: str) -> None:
    given = RecordArguments.model_validate({"aggregate": "groups", name: "status"})
    assert (given.by, given.field) == ("status", None)


def test_groups_of_nothing_are_refused() -> None:
    with pytest.raises(ValidationError, match="name it in `by`"):
        RecordArguments.model_validate({"aggregate": "groups"})
