"""Compare how questions are taken apart with gold decompositions, or count how often they are.

python -m benchmarks.decompositions FOLDER [--reasoner rules] [--limit N] [--show N]: FOLDER holds
queries.jsonl as in the BEIR layout. Where a query's metadata has a `decomposition`, its gold graph
is read from `depends_on`, or else from "#1", which stands for the first answer. A fan-out lists
one step for each item; steps that wait for the same ones count as one question about an item.

Prints one JSON object: `n`; `decomposed`, the share with more than one part; and with gold
`same_parts` and `parts_off`, the share with as many parts and the mean absolute difference;
`same_shape`, the share with the same multiset of depths (a part's depth is the longest way to a
part that waits for nothing); `first_leads`, the share whose later parts all wait, over others,
for the first, and `gold_first_leads`; `by_type`, the same for each type.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.settings import Settings
from core.types import Part, Understanding
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Reasoner

ANSWER = re.compile(r"#(\d+)")
Graph = list[set[int]]


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read a JSONL file, compressed or not."""
    plain = folder / f"{name}.jsonl"
    if plain.exists():
        lines = plain.read_text(encoding="utf-8").splitlines()
    else:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as handle:
            lines = handle.read().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def gold_graph(steps: Sequence[dict[str, Any]]) -> Graph:
    """Return which earlier steps each step waits for, a fan-out's items joined."""
    places = {str(step.get("id", n)): n for n, step in enumerate(steps)}
    graph: Graph = []
    for step in steps:
        named = [places[str(one)] for one in step.get("depends_on", ()) if str(one) in places]
        named += [int(one) - 1 for one in ANSWER.findall(step["question"])]
        graph.append(set(named))
    if not any("depends_on" in step for step in steps):
        return graph
    kept: Graph = []
    for waits in graph:
        if not waits or waits not in kept:
            kept.append(waits)
    return kept if len(kept) > 1 else graph


def own_graph(parts: Sequence[Part]) -> Graph:
    """Return which earlier parts each part waits for, counted from 0."""
    return [{dep - 1 for dep in part.deps} for part in parts]


def depths(graph: Graph) -> list[int]:
    """Return the depth of every part, sorted; a part comes after what it waits for."""
    found: list[int] = []
    for waits in graph:
        found.append(1 + max((found[n] for n in waits if n < len(found)), default=-1))
    return sorted(found)


def first_leads(graph: Graph) -> bool:
    """Tell whether every later part waits for the first, over others too."""
    led = {0}
    for place, waits in enumerate(graph[1:], start=1):
        if led & waits:
            led.add(place)
    return len(graph) > 1 and len(led) == len(graph)


def compared(pairs: Sequence[tuple[Graph, Graph | None]]) -> dict[str, Any]:
    """Return the figures of (own graph, gold graph) pairs."""
    count = max(1, len(pairs))
    report: dict[str, Any] = {
        "n": len(pairs),
        "decomposed": round(sum(len(own) > 1 for own, _ in pairs) / count, 4),
    }
    gold = [(own, other) for own, other in pairs if other is not None]
    if gold:
        both = len(gold)
        report |= {
            "same_parts": round(sum(len(a) == len(b) for a, b in gold) / both, 3),
            "parts_off": round(sum(abs(len(a) - len(b)) for a, b in gold) / both, 3),
            "same_shape": round(sum(depths(a) == depths(b) for a, b in gold) / both, 3),
            "first_leads": round(sum(first_leads(a) for a, _ in gold) / both, 3),
            "gold_first_leads": round(sum(first_leads(b) for _, b in gold) / both, 3),
        }
    return report


def shown(known: Understanding) -> None:
    """Print a question with its parts."""
    print(f"{known.confidence:.2f} {known.question}")
    for part, wants in zip(known.parts, known.required_fields, strict=True):
        print(f"       {part.text} {part.about} -> {part.slot} {part.deps} {wants}")


def main() -> None:
    """Compare and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reasoner", choices=["rules"], default="rules")
    parser.add_argument("--limit", type=int, default=0, help="only the first so many questions")
    parser.add_argument("--show", type=int, default=0, help="print so many decompositions first")
    given = parser.parse_args()
    settings = Settings()
    reasoner: Reasoner = RulesReasoner(settings, lambda found: dict.fromkeys(found, 1.0), None)
    pairs: list[tuple[Graph, Graph | None]] = []
    types: dict[str, list[tuple[Graph, Graph | None]]] = {}
    plain: list[float] = []
    for row in read_rows(given.folder, "queries")[: given.limit or None]:
        known = reasoner.understand(row["text"], [])
        if known.kind == "plain":
            plain.append(known.confidence)
        if len(known.parts) > 1 and given.show:
            given.show -= 1
            shown(known)
        steps = row.get("metadata", {}).get("decomposition")
        pair = (own_graph(known.parts), gold_graph(steps) if steps else None)
        pairs.append(pair)
        types.setdefault(str(row.get("metadata", {}).get("type", "")), []).append(pair)
    report = {"folder": given.folder.name, "reasoner": given.reasoner, **compared(pairs)}
    sure = sum(value >= settings.plan.plain_confidence for value in plain)
    report["surely_plain"] = round(sure / max(1, len(pairs)), 4)
    if 1 < len(types) <= 12:
        report["by_type"] = {name: compared(found) for name, found in sorted(types.items())}
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
