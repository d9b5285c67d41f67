"""Ranks of nodes: every arrow goes down but those that close a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Link = tuple[str, str]


def back_links(names: Sequence[str], links: Sequence[Link]) -> set[Link]:
    """Return the links that lead back to a node on the way to them, seen in the order of names.

    Without them there is no loop (depth-first search). A link of a node to itself is one of them.
    """
    place = {name: number for number, name in enumerate(names)}
    after = _neighbours(names, links)
    entered = {target for source, target in links if source != target}
    starts = [*(name for name in names if name not in entered), *names]
    found: set[Link] = set()
    seen: set[str] = set()
    for start in starts:
        if start in seen:
            continue
        on_way = {start: None}  # in the order in which they were entered
        waiting = [iter(sorted(after[start], key=place.__getitem__))]
        seen.add(start)
        while waiting:
            here = next(reversed(on_way))
            following = next(waiting[-1], None)
            if following is None:
                waiting.pop()
                on_way.pop(here)
            elif following in on_way:
                found.add((here, following))
            elif following not in seen:
                seen.add(following)
                on_way[following] = None
                waiting.append(iter(sorted(after[following], key=place.__getitem__)))
    return found


def ranks(names: Sequence[str], links: Sequence[Link]) -> dict[str, int]:
    """Return the length of the longest way to each node; the links have no loop."""
    before: dict[str, list[str]] = {name: [] for name in names}
    for source, target in links:
        before[target].append(source)
    found: dict[str, int] = {}
    while len(found) < len(before):
        for name in names:
            if name not in found and all(source in found for source in before[name]):
                found[name] = 1 + max((found[source] for source in before[name]), default=-1)
    return found


def _neighbours(names: Sequence[str], links: Sequence[Link]) -> Mapping[str, set[str]]:
    after: dict[str, set[str]] = {name: set() for name in names}
    for source, target in links:
        after[source].add(target)
    return after
