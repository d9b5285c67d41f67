"""Blocks of a passage, and what a sentence needs beside it to be read alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.passages import CODE_KIND, FENCED, ITEM, TABLE, Span, spans_of
from core.types import Claim, Evidence
from reasoning.rules.lexicon import Lexicon, lexicon

# As much as a reader takes in at once; a longer list is cut after a whole item.
MOST_CHARACTERS = 900  # chosen, not measured
COLONS, QUESTION_ENDS = (":", "："), ("?", "？")
FENCE = re.compile(r"\s*(?:```|~~~)")
HEADING = re.compile(r"\s*#{1,6}\s")
# Chosen, not measured:
ITEMS, IN_LINE = 3, 0.5  # so many commas make a list, which is worth this much of one in lines
SEPARATOR = re.compile(r"[,;、，；]\s?(?=\S)")
CODE = re.compile(r"`[^`\n]+`|```|~~~")


def announced(text: str, spans: tuple[Span, ...], place: int) -> int:
    """Return the place of the last item or line of code that a sentence announces, or its own."""
    start, end = spans[place]
    last = place
    if not text[start:end].rstrip().endswith(COLONS):
        return last
    listed = last + 1 < len(spans) and ITEM.match(text, spans[last + 1][0])
    while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
        following = text[slice(*spans[last + 1])]
        if HEADING.match(following) or (listed and not _goes_on(text, spans, last)):
            break
        last += 1
        if not listed and not FENCE.match(following):
            break
        if FENCE.match(following):
            return code_end(text, spans, last, start)
    return last


def _goes_on(text: str, spans: tuple[Span, ...], last: int) -> bool:
    """Tell whether the next sentence is an item, or goes on with the one before."""
    between = text[spans[last][1] : spans[last + 1][0]]
    return bool(ITEM.match(text, spans[last + 1][0])) or "\n" not in between


def code_end(text: str, spans: tuple[Span, ...], place: int, start: int) -> int:
    """Return the place of the fence that closes a block of code, or of its last line that fits."""
    last = place
    while last + 1 < len(spans) and spans[last + 1][1] - start <= MOST_CHARACTERS:
        last += 1
        if FENCE.match(text, spans[last][0]):
            break
    return last


def reports(text: str, words: Lexicon) -> bool:
    """Tell whether a sentence reports a question and leaves it open: "Many ask whether …"."""
    reported = words.search("reported", text)
    return reported is not None and not any(mark in text[reported.end() :] for mark in ":;—：；")


def announces(item: Evidence) -> bool:
    """Tell whether the chunk behind a piece of evidence is what its last sentence announces."""
    return item.text.rstrip().endswith(COLONS)


def follows(item: Evidence, evidence: Sequence[Evidence], step: int = 1) -> Evidence | None:
    """Return the piece of evidence that stands `step` chunks behind another in its document."""
    for other in evidence:
        if other.document_id == item.document_id and other.ordinal == item.ordinal + step:
            return other
    return None


def code_spans(text: str, spans: tuple[Span, ...]) -> frozenset[int]:
    """Return the places of sentences that stand within fences; one without an end fences nothing.

    Else a lone fence in a text would keep all that follows it from being an answer.
    """
    marks = [text[start:end].count("```") + text[start:end].count("~~~") for start, end in spans]
    inside, found, paired = False, set(), sum(marks) // 2 * 2
    for place, fences in enumerate(marks):
        fences, paired = min(fences, paired), max(0, paired - fences)
        if inside or fences:
            found.add(place)
        inside ^= bool(fences % 2)
    return frozenset(found)


def listed(unit: str) -> float:
    """Return how much of a list a text is, 0..1; commas may stand between other things."""
    if sum(ITEM.match(line) is not None for line in unit.splitlines()[1:]) > 1:
        return 1.0
    return IN_LINE * min(1.0, len(SEPARATOR.findall(unit)) / ITEMS)


def shows_code(text: str, spans: Sequence[Span], last: int, unit: str) -> bool:
    """Tell whether a sentence holds code or code follows it."""
    fenced = last + 1 < len(spans) and FENCE.match(text, spans[last + 1][0]) is not None
    return fenced or CODE.search(unit) is not None


STEP = re.compile(r"\s*\d{1,2}[.)]\s")
STEPS = re.compile(r"^[ \t]*\d{1,2}[.)]\s", re.MULTILINE)
COLUMN = " | "
AHEAD = 2  # sentences behind one, that may have its cause; chosen, not measured
MOST_STEPS = 4  # sentences behind the first that say how to do something; chosen, not measured
MOST_BACK = 2  # sentences before one that begins with "it"; chosen, not measured


BULLET = re.compile(r"^[-*+•]\s+")  # of a single item


def quoted(item: Evidence, start: int, end: int) -> Claim:
    """Return a claim that says text[start:end] of a piece of evidence, and cites it."""
    citation = item.cited(start, end)
    text = citation.quote
    if item.kind != CODE_KIND and not keeps_lines(text):
        text = BULLET.sub("", " ".join(text.split()))
    return Claim(text=text, citations=[citation])


def steps_in(text: str) -> Span | None:
    """Return where the numbered steps of a text stand, with the line that announces them."""
    found = [*STEPS.finditer(text)]
    if not found:
        return None
    before = text[: found[0].start()].rstrip()
    start = before.rfind("\n") + 1 if before.endswith(COLONS) else found[0].start()
    end = text.find("\n\n", found[-1].end())
    end = len(text.rstrip()) if end < 0 else end
    if text[:end].rstrip().endswith(COLONS):  # what the last step announces belongs to it
        code = FENCED.match(text, len(text) - len(text[end:].lstrip()))
        if code is not None:
            return start, code.end()
        end = len(text[: found[-1].start()].rstrip()) if len(found) > 1 else end
    return start, end


def keeps_lines(text: str) -> bool:
    """Tell whether a text holds list items or code, whose line breaks say something."""
    lines = text.splitlines()[1:]
    return any(ITEM.match(line) or FENCE.match(line) or COLUMN in line for line in lines)


def in_context(
    item: Evidence,
    start: int,
    end: int,
    *,
    code: bool,
    items: bool = False,
    brings: str = "",
) -> tuple[int, int]:
    """Return where one sentence or several begin and end with what they need, in their evidence.

    With `code` the block of code that follows belongs to them and the steps around them, with
    `items` all of the list; a sentence behind that has a word of the list `brings` (a cause) where
    they have none. A row of a table stands alone.
    """
    spans = spans_of(item.text, item.kind)
    begins = {span[0]: place for place, span in enumerate(spans)}
    ends = {span[1]: place for place, span in enumerate(spans)}
    if start not in begins or end not in ends:  # a field of a record within its line
        return start, end
    words = lexicon(item.language)
    first, last = begins[start], ends[end]
    if item.kind == TABLE:
        return start, end
    if code or items:
        first, last = steps(item.text, spans, first, last, ITEM if items else STEP)
    if code:
        last = _in_order(item.text, spans, last, words)
    text = item.text[spans[first][0] : spans[last][1]]
    if brings and not words.found(brings, text):
        ahead = [words.found(brings, item.text[slice(*one)]) for one in spans[last + 1 :][:AHEAD]]
        last += ahead.index(True) + 1 if any(ahead) else 0
    first = _first(item, spans, first, words)
    last = _last(item, spans, last, words, code=code)
    return spans[first][0], spans[last][1]


def _in_order(text: str, spans: Sequence[Span], last: int, words: Lexicon) -> int:
    """Return the last sentence of a paragraph that goes on with "then …", else the given one."""
    end = last
    while end + 1 < len(spans) and "\n" not in text[spans[end][1] : spans[end + 1][0]]:
        end += 1
    following = [words.found("sequence", text[slice(*one)]) for one in spans[last + 1 : end + 1]]
    return end if any(following) and end - last <= MOST_STEPS else last


def steps(
    text: str, spans: tuple[Span, ...], first: int, last: int, item: re.Pattern[str] = STEP
) -> tuple[int, int]:
    """Return the places of the first and the last of the items around one, numbered ones alone.

    The sentence that announces them is among them.
    """
    if item.match(text, spans[first][0]) is None:
        return first, last

    def begins(place: int) -> int:
        """Return the place of the item that a sentence is of, -1 for none."""
        while place > 0 and not item.match(text, spans[place][0]):
            if "\n" in text[spans[place - 1][1] : spans[place][0]]:
                return -1
            place -= 1
        return place if item.match(text, spans[place][0]) else -1

    while last + 1 < len(spans) and begins(last + 1) >= 0:
        if spans[last + 1][1] - spans[first][0] > MOST_CHARACTERS:
            break
        last += 1
    while first and (before := begins(first - 1)) >= 0:
        if spans[last][1] - spans[before][0] > MOST_CHARACTERS:
            break
        first = before
    if first and text[slice(*spans[first - 1])].rstrip().endswith(COLONS):
        first -= 1
    return first, last


def _first(item: Evidence, spans: tuple[Span, ...], place: int, words: Lexicon) -> int:
    """Return the place of the sentence that says what "it" stands for."""
    first = place
    while first and place - first < MOST_BACK:
        start, end = spans[first]
        before = item.text[slice(*spans[first - 1])]
        apart = HEADING.match(before) or ITEM.match(before) or FENCE.match(before)
        if apart or not words.starts("reference", item.text[start:end]):
            break
        first -= 1
    return first


def _last(
    item: Evidence, spans: tuple[Span, ...], place: int, words: Lexicon, *, code: bool
) -> int:
    """Return the place of the last sentence that belongs to one: an item, code, a reply."""
    text = item.text[slice(*spans[place])].rstrip()
    last = announced(item.text, spans, place)
    if (text.endswith(QUESTION_ENDS) or reports(text, words)) and last + 1 < len(spans):
        last += 1  # a question is answered by what follows it
    if code and last + 1 < len(spans) and FENCE.match(item.text, spans[last + 1][0]):
        return code_end(item.text, spans, last + 1, spans[place][0])
    return last
