"""A count of records goes with any record that it lists, and stays with them."""

from __future__ import annotations

from typing import Any

import pytest

from stores.erasure.redaction import redacted


def result() -> dict[str, Any]:
    record = {"evidence_id": "c1", "document_id": "a", "kind": "record", "text": "name: Oak"}
    count = {
        "evidence_id": "records-1",
        "document_id": "records",
        "kind": "records",
        "title": "records",
        "text": "1 record: Oak",
        "metadata": {"held": ["c1"]},
    }
    cited = {"evidence_id": "records-1", "document_id": "records", "quote": "1 record: Oak"}
    claim = {"text": "1 record: Oak", "citations": [cited]}
    return {"evidence": [count, record], "claims": [claim]}


@pytest.mark.parametrize(("deleted", "goes"), [("a", True), ("b", False)])
def test_a_count_goes_with_what_it_lists(deleted: str, goes: bool) -> None:
    run = result()
    hidden = redacted(run, [], {deleted})
    assert (hidden is not None) is goes
    assert ("Oak" not in str(run)) is goes
