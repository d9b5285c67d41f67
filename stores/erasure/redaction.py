"""Take what deleted documents said out of finished runs; ids, scores, times and counts stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from core.language.analysis import Token, analyze, terms

ERASED = "erased"
NOTICE = "[erased: this answer cited a document that has been deleted]"
HIDDEN = "…"
TEXTS = ("text", "title", "section")
FREE = frozenset({"text", "query", "value", "template", "about", "whole"})  # in a plan
SHORTEST = 4  # characters of a name that is replaced wherever it stands
PLAIN = re.compile(r"[a-z_]*")  # a decision that is a word of the program

Elsewhere = Callable[[Sequence[str]], bool]  # whether documents that stay say terms in a row


def nowhere(terms: Sequence[str]) -> bool:
    """Tell that no other document says these terms."""
    return False


class Hidden:
    """Replace, in texts, words and rows of words that deleted documents alone said."""

    def __init__(
        self,
        texts: Iterable[tuple[str, str]] = (),
        literals: Iterable[str] = (),
        elsewhere: Elsewhere = nowhere,
    ) -> None:
        """Take (language, text) pairs of the documents, and names to replace as they stand."""
        said = list(texts)
        self._languages = sorted({language for language, _ in said})
        rows = [terms(text, language) for language, text in said]
        self._terms = {term for row in rows for term in row}
        self._pairs = {pair for row in rows for pair in pairwise(row)}
        self._elsewhere = elsewhere
        self._known: dict[tuple[str, ...], bool] = {}
        longest = sorted(set(filter(None, literals)), key=len, reverse=True)
        found = "|".join(re.escape(one) for one in longest)
        self._literals = re.compile(rf"(?<!\w)(?:{found})(?!\w)") if longest else None

    def text(self, text: str) -> str:
        """Return a text without these words."""
        if self._literals is not None:
            text = self._literals.sub(HIDDEN, text)
        hidden: set[int] = set()
        for language in self._languages:
            for row in self._rows(analyze(text, language)):
                if not self._said_elsewhere(tuple(token.term for token in row)):
                    hidden.update(range(row[0].start, max(token.end for token in row)))
        if not hidden:
            return text
        kept = (HIDDEN if at in hidden else sign for at, sign in enumerate(text))
        return re.sub(f"{HIDDEN}+", HIDDEN, "".join(kept))

    def json(self, value: Any, keys: Collection[str] | None = None) -> Any:  # noqa: ANN401
        """Return a JSON value whose strings lack them; with `keys`, the strings of those alone."""
        if isinstance(value, dict):
            return {name: self._field(name, inner, keys) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.json(inner, keys) for inner in value]
        return self.text(value) if isinstance(value, str) and keys is None else value

    def _field(self, name: str, value: Any, keys: Collection[str] | None) -> Any:  # noqa: ANN401
        if keys is not None and name in keys and isinstance(value, str):
            return self.text(value)
        return self.json(value, keys)

    def _rows(self, tokens: Sequence[Token]) -> Iterator[list[Token]]:
        """Yield the longest rows of tokens that follow each other in the documents as well."""
        row: list[Token] = []
        for token in tokens:
            if row and (row[-1].term, token.term) in self._pairs:
                row.append(token)
                continue
            if row:
                yield row
            row = [token] if token.term in self._terms else []
        if row:
            yield row

    def _said_elsewhere(self, row: tuple[str, ...]) -> bool:
        if row not in self._known:
            self._known[row] = self._elsewhere(row)
        return self._known[row]


def redacted(
    result: dict[str, Any],
    trail: list[dict[str, Any]],
    documents: Collection[str],
    elsewhere: Elsewhere = nowhere,
    names: Collection[str] = (),
) -> Hidden | None:
    """Redact, in place, what these documents said; return what was hidden, None for nothing.

    Evidence and citations keep their places, ids of passages and scores. A claim that cited such a
    document goes, and the answer with it; replies of the chat model go as a whole. Elsewhere in
    the run go `names`, the values of slots found in the documents, and words, or rows of words, of
    their passages that no document which stays says (`elsewhere`).
    """
    items = [one for one in result.get("evidence", []) if one.get("document_id") in documents]
    gone = {one["evidence_id"] for one in items}
    cited = _forget_claims(result, documents, gone)
    if not gone:
        return None
    values = _slot_values(result, gone)
    hidden = Hidden(_texts(items), {*values, *names, *_names(items)}, elsewhere)
    for item in items:
        item.update(dict.fromkeys(TEXTS, ""), metadata={}, document_id=ERASED, source=ERASED)
    result["answer"] = NOTICE if cited else hidden.text(result.get("answer", ""))
    _hide(result, trail, hidden)
    return hidden


def hide_names(result: dict[str, Any], trail: list[dict[str, Any]], hidden: Hidden) -> bool:
    """Hide names in a run that asked back, in place; return whether it said any."""
    before = json.dumps([result, trail])
    _hide(result, trail, hidden)
    return json.dumps([result, trail]) != before


def literal_names(names: Iterable[str]) -> set[str]:
    """Return the names that are long enough to be told from other words."""
    return {name for name in names if len(name) >= SHORTEST}


def _forget_claims(result: dict[str, Any], documents: Collection[str], gone: set[str]) -> bool:
    cited = False
    for claim in result.get("claims", []):
        of_it = [one for one in claim.get("citations", []) if one.get("document_id") in documents]
        for citation in of_it:
            gone.add(citation["evidence_id"])
            citation.update(quote="", start=0, end=0, document_id=ERASED, source=ERASED)
        if of_it:
            cited, claim["text"] = True, ""
    return cited


def _texts(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = []
    for item in items:
        told = [item.get(name, "") for name in TEXTS]
        told.append(json.dumps(item.get("metadata") or {}, ensure_ascii=False))
        found.append((item.get("language", "und"), "\n".join(told)))
    return found


def _names(items: list[dict[str, Any]]) -> set[str]:
    fields = ("title", "document_id", "source")
    return literal_names(item.get(name, "") for item in items for name in fields)


def _slot_values(result: dict[str, Any], gone: set[str]) -> set[str]:
    slots = (result.get("plan") or {}).get("slots") or []
    return {slot["value"] for slot in slots if slot.get("evidence_id") in gone}


def _hide(result: dict[str, Any], trail: list[dict[str, Any]], hidden: Hidden) -> None:
    for item in result.get("evidence", []):
        if item.get("query"):
            item["query"] = hidden.text(item["query"])
    for claim in result.get("claims", []):
        claim["text"] = hidden.text(claim["text"])
    for name in ("missing", "warnings", "clarification"):
        if name in result:
            result[name] = hidden.json(result[name])
    if result.get("plan"):
        result["plan"] = hidden.json(result["plan"], FREE)
    for step in trail:
        for call in step.get("calls", []):
            call["reply"], call["error"] = "", ""
        for stage in step.get("stages", []):
            stage["note"] = hidden.text(stage.get("note", ""))
        decision = step.get("decision", "")
        if not PLAIN.fullmatch(decision):
            step["decision"] = hidden.text(decision)
        for name in ("arguments", "reason", "degraded"):
            if name in step:
                step[name] = hidden.json(step[name])
