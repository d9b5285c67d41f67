"""Which tools a model may choose from."""

from __future__ import annotations

import pytest

from core.types import ToolSpec
from reasoning.llm.plan import searches

BASES = ("search", "search_vector", "search_text", "query_records", "read_document")
GENERAL = [ToolSpec(name=base, base=base, purpose=f"Use {base}.") for base in BASES]
SCOPED = ToolSpec(name="books", base="search_text", purpose="Find books.", scoped=True)


@pytest.mark.parametrize(
    ("tools", "everywhere", "offered"),
    [
        (GENERAL, False, ["search", "query_records"]),
        ([*GENERAL, SCOPED], False, ["books"]),
        (GENERAL, True, list(BASES[:4])),
        ([*GENERAL, SCOPED], True, [*BASES[:4], "books"]),
        (GENERAL[1:3], False, ["search_vector", "search_text"]),
        (GENERAL[4:], False, []),
    ],
)
def test_a_channel_alone_is_offered_once_both_together_failed(
    tools: list[ToolSpec], everywhere: bool, offered: list[str]
) -> None:
    assert [spec.name for spec in searches(tools, everywhere=everywhere)] == offered
