"""What a record query is given must fit together."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tools.query_records import RecordArguments


@pytest.mark.parametrize("given", [{}, {"field": "status"}])
def test_groups_of_nothing_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="name it in `by`"):
        RecordArguments.model_validate({"aggregate": "groups", **given})
