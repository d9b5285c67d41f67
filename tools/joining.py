"""One answer of several collections to one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.metadata import ROW
from core.types import Evidence, FieldInfo, ToolSpec
from retrievers.channels import VECTOR
from tools.record_rows import together
from tools.types import ToolError, ToolResult

OWN_ORDER = "each collection is ordered by itself"


def joined_specs(specs: Sequence[Sequence[ToolSpec]]) -> list[ToolSpec]:
    """Describe the tools of several collections, each name once, with the fields of all."""
    found: dict[str, ToolSpec] = {}
    for spec in (one for box in specs for one in box):
        known = found.setdefault(spec.name, spec)
        if known is not spec:
            update: dict[str, Any] = {
                "fields": _fields(known, spec),
                "tables": [*known.tables, *spec.tables],
                "others": known.others + spec.others,
            }
            found[spec.name] = known.model_copy(update=update)
    return list(found.values())


def _fields(one: ToolSpec, other: ToolSpec) -> list[FieldInfo]:
    """Return the fields of both; a field of both has the values of both."""
    found = {field.name: field for field in one.fields}
    for field in other.fields:
        known = found.setdefault(field.name, field)
        examples = list(dict.fromkeys([*known.examples, *field.examples]))
        update = {
            "type": field.type if field.type == known.type else "text",
            "values": max(known.values, field.values, len(examples)),
            "examples": examples,
        }
        found[field.name] = known.model_copy(update=update)
    return list(found.values())


def joined_results(
    calls: Mapping[str, Callable[[], ToolResult]], arguments: Mapping[str, Any], constant: int
) -> ToolResult:
    """Make the call in each collection and rank what they found together.

    As many passages stay as `limit` says, else as the longest ranking had. A collection that
    cannot be asked, for it lacks a field, is named in the notes; raises when none can.
    """
    results: dict[str, ToolResult] = {}
    failed: dict[str, ToolError] = {}
    for name, call in calls.items():
        try:
            results[name] = call()
        except ToolError as error:
            failed[name] = error
    if not results:
        raise next(iter(failed.values()))
    ranked = joint_ranking({name: one.evidence for name, one in results.items()}, constant)
    most = arguments.get("limit") or max(len(one.evidence) for one in results.values())
    rows = {item.collection: item for item in ranked if item.kind == ROW}
    if rows:  # what was counted comes before what is listed of it
        listed = [item for item in ranked if item.kind != ROW]  # as many of each as asked for
        counts = {name: results[name].total or 0 for name in calls if name in rows}
        ranked = [together(rows, counts, arguments.get("language")), *listed]
        most = len(ranked)
    totals = [one.total for one in results.values() if one.total is not None]
    notes = [f"{name}: {note}" for name, one in results.items() for note in one.notes]
    notes += [f"{name}: {error}" for name, error in failed.items()]
    return ToolResult(
        evidence=ranked[:most],
        auth_filter={**next(iter(results.values())).auth_filter, "collections": list(calls)},
        notes=[*notes, OWN_ORDER] if arguments.get("order_by") else notes,
        stages=[
            stage.model_copy(update={"note": f"{name}: {stage.note}"})
            for name, one in results.items()
            for stage in one.stages
        ],
        hidden=sum(one.hidden for one in results.values()),
        total=sum(totals) if totals else None,
        partial=any(one.partial for one in results.values()),
        remembered=all(one.remembered for one in results.values()),
    )


def joint_ranking(found: Mapping[str, Sequence[Evidence]], constant: int) -> list[Evidence]:
    """Rank the evidence of several collections, each best first, by reciprocal rank fusion.

    Scores of words depend on a collection's own statistics, so they say nothing across collections;
    ranks do not either where one of them has nothing to say. The cosines of one embedder do: the
    joint ranking by them is the second one that is fused. Evidence without one counts as the last.
    """
    items = [
        item.model_copy(update={"collection": name, "score": 1 / (constant + rank)})
        for name, own in found.items()
        for rank, item in enumerate(own, start=1)
    ]
    if any(VECTOR in item.scores for item in items):
        near = sorted(items, key=lambda item: -item.scores.get(VECTOR, -1.0))
        items = [
            item.model_copy(update={"score": item.score + 1 / (constant + rank)})
            for rank, item in enumerate(near, start=1)
        ]
    return sorted(items, key=lambda item: -item.score)
