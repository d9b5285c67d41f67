"""Remove from finished runs the text of deleted documents, or of those closed to the reader.

Ids, scores, times and counts stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from core.language.analysis import Token, analyze, terms
from core.language.cues import own_texts
from core.metadata import CORRECTS, LISTED_CHUNKS, ROW
from core.recall import NOTE
from core.types import Claim, marked, numbered_sources

ERASED = "erased"
# Neither how many passages nor which: their number and names are hidden as well.
WITHHELD = "details are withheld: they may rest on documents that are gone or closed to you"
NOTICE = "[erased: this answer cited a document that has been deleted]"
NOTE_NOTICE = "[erased: this answer cited a note of yours that has been deleted]"
HIDDEN = "…"
TEXTS = ("text", "title", "section")
FREE = frozenset({"text", "query", "value", "template", "about", "whole"})  # in a plan
# Characters of a name that is replaced wherever it stands: shorter ones are often common words.
# Chosen, not measured.
SHORTEST = 4
# Nodes whose decisions are words of the program; those of others may be words of documents.
DECIDING = frozenset({"understand", "stop_condition", "refuse"})

Elsewhere = Callable[[Sequence[str]], bool]  # whether documents that stay say terms in a row


def nowhere(terms: Sequence[str]) -> bool:
    """Tell that no other document says these terms."""
    return False


class Hidden:
    """Replace, in texts, words and rows of words that only deleted documents have.

    What a person typed (`own`) is theirs, wherever it is repeated. Function words, and what Carrel
    itself says, are of no document.
    """

    def __init__(
        self,
        texts: Iterable[tuple[str, str]] = (),
        literals: Iterable[str] = (),
        elsewhere: Elsewhere = nowhere,
        own: str = "",
    ) -> None:
        """Take (language, text) pairs of the documents, and names to replace as they stand."""
        said = list(texts)
        self._languages = sorted({language for language, _ in said})
        rows = [terms(text, language) for language, text in said]
        self._terms = {term for row in rows for term in row}
        self._pairs = {pair for row in rows for pair in pairwise(row)}
        self._elsewhere = elsewhere
        self._known: dict[tuple[str, ...], bool] = {}
        self._own = [_row(terms(own, language)) for language in self._languages]
        self._own += map(_messages, self._languages)
        self._literals = _any_of({one for one in literals if one and not _stands_in(one, own)})

    def text(self, text: str) -> str:
        """Return a text without these words."""
        if self._literals is not None:
            text = self._literals.sub(HIDDEN, text)
        hidden: set[int] = set()
        for language in self._languages:
            for whole in self._rows(analyze(text, language)):
                row = _told(whole)
                if row and not self._said_elsewhere(tuple(token.term for token in row)):
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
            typed = any(_row(row) in own for own in self._own)
            self._known[row] = typed or self._elsewhere(row)
        return self._known[row]


def _row(said: Iterable[str]) -> str:
    return f" {' '.join(said)} "


def _told(row: Sequence[Token]) -> Sequence[Token]:
    """Return a row from its first word that tells something to its last, none for no such word.

    One digit tells nothing: trails count passages, words and questions with it.
    """
    telling = [
        at
        for at, token in enumerate(row)
        if not token.is_function and not (len(token.term) == 1 and token.term.isdigit())
    ]
    return row[telling[0] : telling[-1] + 1] if telling else ()


@cache
def _messages(language: str) -> str:
    """Return what Carrel says in all its languages, as terms of one; two spaces end a row."""
    return "".join(_row(terms(text, language)) for text in own_texts())


def _any_of(names: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern of names as whole words, the longest first; None for no name."""
    found = "|".join(re.escape(one) for one in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{found})(?!\w)") if names else None


def _stands_in(name: str, text: str) -> bool:
    found = _any_of({name}) if name in text else None
    return found is not None and found.search(text) is not None


class Everything(Hidden):
    """Replace every text: it is unknown which of its words rest on what is closed."""

    def text(self, text: str) -> str:
        """Return a sign that there was a text."""
        return HIDDEN if text else ""


def redacted(
    result: dict[str, Any],
    trail: list[dict[str, Any]],
    documents: Collection[str],
    elsewhere: Elsewhere = nowhere,
    names: Collection[str] = (),
    staying: Collection[str] = (),
    own: str = "",
    notice: str = NOTICE,
) -> Hidden | None:
    """Redact, in place, the text of these documents; return what was hidden, None for nothing.

    Evidence and citations keep their places, ids of passages and scores. A claim that cited such a
    document goes, and the answer with it; replies of the chat model go completely. Elsewhere in
    the run go `names`, the values of slots found in the documents, and words, or rows of words, of
    their passages that no open document says (`elsewhere`). `staying` are ids of passages of other
    documents, which may have had the same id in the caller's eyes; `own` is the question as it was
    typed, whose words stay.
    """

    def told(one: dict[str, Any]) -> bool:
        return one.get("document_id") in documents and one["evidence_id"] not in staying

    items = [one for one in result.get("evidence", []) if told(one)]
    gone = {one["evidence_id"] for one in items}
    resting = gone | {*documents}
    counts = [one for one in result.get("evidence", []) if resting.intersection(listed_by(one))]
    items += counts
    gone |= {one["evidence_id"] for one in counts}
    cited = _cited(result, lambda one: told(one) or one["evidence_id"] in gone)
    gone |= {one["evidence_id"] for one in cited}
    if not gone:
        return None
    values = _slot_values(result, gone)
    hidden = Hidden(_texts(items), {*values, *names, *_names(items)}, elsewhere, own)
    _empty(items, cited, ERASED)
    result["answer"] = notice if cited else hidden.text(result.get("answer", ""))
    for claim in result.get("claims", []):
        claim["text"] = hidden.text(claim["text"])
    _hide(result, trail, hidden)
    return hidden


def withhold(
    result: dict[str, Any], trail: list[dict[str, Any]], closed: Collection[str], *, rests: bool
) -> None:
    """Take passages of these ids out of a run, in place, with all that may rest on them.

    A claim that cites one goes, and every claim where one filled a slot. With `rests` the answer is
    made of the claims that stay, without them it is left. Texts of plan and trail always go, with
    counts of passages, and a warning says so.
    """
    found = result.get("evidence", [])
    result["evidence"] = [one for one in found if one["evidence_id"] not in closed]
    if _slot_values(result, closed):
        result["claims"] = []
    result["claims"] = [
        claim
        for claim in result.get("claims", [])
        if not any(one["evidence_id"] in closed for one in claim.get("citations", []))
    ]
    if rests and result.get("answer"):
        said, less = _kept_claims(result), len(result["evidence"]) < len(found)
        note = f"[{WITHHELD}]" if less or not said else ""
        result["answer"] = "\n".join(filter(None, [said, note]))
    _hide(result, trail, Everything())
    result |= {"missing": [], "warnings": [WITHHELD], "withheld": True}
    if result.get("clarification"):
        result["clarification"] = {"question": WITHHELD, "options": []}
    for question in (result.get("plan") or {}).get("questions", []):
        question["calls"] = []
    for step in trail:
        kept = [one for one in step.get("evidence", []) if one[0] not in closed]
        step |= {"arguments": {}, "evidence": kept, "stages": []}


def listed_by(item: dict[str, Any]) -> list[str]:
    """Return the passages that a count rests on, and the note that a note corrects; else none."""
    metadata = item.get("metadata") or {}
    if item.get("kind") == NOTE:
        return [metadata[CORRECTS]] if metadata.get(CORRECTS) else []
    return list(metadata.get(LISTED_CHUNKS, ())) if item.get("kind") == ROW else []


def hide_repeated(result: dict[str, Any], trail: list[dict[str, Any]], hidden: Hidden) -> bool:
    """Hide what a run repeats and does not rest on, in place; return whether it had any."""
    before = json.dumps([result, trail])
    if not result.get("claims"):  # else the answer says what its own evidence says
        result["answer"] = hidden.text(result.get("answer", ""))
    _hide(result, trail, hidden)
    return json.dumps([result, trail]) != before


def literal_names(names: Iterable[str]) -> set[str]:
    """Return the names that are long enough to differ from other words."""
    return {name for name in names if len(name) >= SHORTEST}


def _cited(result: dict[str, Any], gone: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the citations that are gone, and empty the claims that have any."""
    found = []
    for claim in result.get("claims", []):
        if of_it := [one for one in claim.get("citations", []) if gone(one)]:
            claim["text"] = ""
            found += of_it
    return found


def _kept_claims(result: dict[str, Any]) -> str:
    claims = [Claim.model_validate(one) for one in result.get("claims", [])]
    numbers = numbered_sources(claims)
    kept = [claim for claim in claims if claim.text]
    return "\n".join(marked(claim, numbers) for claim in kept)


def _empty(items: list[dict[str, Any]], cited: list[dict[str, Any]], mark: str) -> None:
    for item in items:
        item.update(dict.fromkeys(TEXTS, ""), metadata={}, document_id=mark, source=mark)
    for citation in cited:
        citation.update(quote="", start=0, end=0, document_id=mark, source=mark)


def _texts(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = []
    for item in items:
        told = [item.get(name, "") for name in TEXTS]
        told.append(json.dumps(item.get("metadata") or {}, ensure_ascii=False))
        found.append((item.get("language", "und"), "\n".join(told)))
    return found


def _names(items: list[dict[str, Any]]) -> set[str]:
    fields = ("title", "document_id", "source")
    told = [item for item in items if item.get("kind") != ROW]  # a count has no name of its own
    return literal_names(item.get(name, "") for item in told for name in fields)


def _slot_values(result: dict[str, Any], gone: Collection[str]) -> set[str]:
    slots = (result.get("plan") or {}).get("slots") or []
    return {slot["value"] for slot in slots if slot.get("evidence_id") in gone}


def _hide(result: dict[str, Any], trail: list[dict[str, Any]], hidden: Hidden) -> None:
    for item in result.get("evidence", []):
        if item.get("query"):
            item["query"] = hidden.text(item["query"])
    for name in ("missing", "warnings", "clarification"):
        if name in result:
            result[name] = hidden.json(result[name])
    if result.get("plan"):
        result["plan"] = hidden.json(result["plan"], FREE)
        for question in result["plan"].get("questions", []):
            for call in question.get("calls", []):  # filters hold values of every name
                call["arguments"] = hidden.json(call.get("arguments", {}))
    for step in trail:
        for call in step.get("calls", []):
            call["reply"], call["error"] = "", ""
        for stage in step.get("stages", []):
            stage["note"] = hidden.text(stage.get("note", ""))
        if step.get("node") not in DECIDING:
            step["decision"] = hidden.text(step.get("decision", ""))
        for name in ("arguments", "reason", "degraded"):
            if name in step:
                step[name] = hidden.json(step[name])
