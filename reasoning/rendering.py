"""Write a verified answer for its reader, whole or sentence by sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

from core.auth import AuthContext
from core.errors import shorten
from core.language.passages import CODE_KIND, TABLE
from core.language.relative_dates import format_day
from core.metadata import ANY, CHAPTERS, LABELS, ROW
from core.recall import NOTE
from core.trace import StreamEvent
from core.types import (
    LIMITS,
    Claim,
    Conflict,
    Draft,
    Evidence,
    Plan,
    StopReason,
    Understanding,
    marked,
    numbered_sources,
    place_of,
)
from reasoning.clarifying import TAG, plain_text
from reasoning.rules.answering.headings import SECTIONS
from reasoning.rules.answering.summaries import map_summary_rows
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.types import Nearest
from reasoning.verification import OTHER_LANGUAGE, settle

CLASSIC_TOOL = "search_classic"
SIGNATURE = re.compile(r"`[^`\n]+`")
EXACT = 1.0  # the confidence of what a query over records found
QUOTE_CHARS = 240  # of the nearest passage, shown in a refusal; chosen, not measured
LINES = frozenset({CODE_KIND, NOTE, TABLE})  # kinds of chunks that stand on lines of their own
DAY = len("2026-01-31")
CLOCK = slice(11, 19)  # of an ISO 8601 time


def render_answer(
    query: Understanding,
    plan: Plan,
    claims: Sequence[Claim],
    missing: Sequence[str],
    evidence: Sequence[Evidence],
    others: Sequence[Claim] = (),
    conflicts: Sequence[Conflict] = (),
) -> str:
    """Join the claims with their marks: a line for a plain answer, a block for each part.

    `others` are claims that `conflicts` add, shown there alone, as is an answer of which all is
    in conflict: newest first, so that nothing leads by chance. The classic pipeline's answer ends
    with the document it elected and how much of it was read.
    """
    words = lexicon(query.language)
    disputed = {place for one in conflicts for place in one.claims}
    leads = len(plan.questions) > 1 or not disputed.issuperset(range(len(claims)))
    lines = [render_claims(plan, claims, evidence)] if claims and leads else []
    whole = [*claims, *others]
    numbers, by_chunk = numbered_sources(whole), {item.chunk_id: item for item in evidence}
    for conflict in conflicts:
        sides = [(whole[at], by_chunk[whole[at].citations[0].chunk_id]) for at in conflict.claims]
        sides.sort(key=lambda one: one[1].updated_at, reverse=True)
        items = [item for _, item in sides]
        stated = all(item.kind == NOTE for item in items)
        timed = len({item.updated_at[:DAY] for item in items}) < len(items)
        lines.append(words.message("conflict_stated" if stated else "conflict"))
        for claim, item in sides:
            note = item.kind == NOTE
            clock = f" {item.updated_at[CLOCK]} UTC" if timed else ""
            named = _day(item, query.language) + clock if note else item.title or item.source
            origin = (named, item.version, "" if note else item.updated_at[:DAY])
            lines.append(f"– {', '.join(filter(None, origin))}: {marked(claim, numbers)}")
    if missing:
        asked = {claim.question_id for claim in claims}
        found = "; ".join(_named(one.text) for one in plan.questions if one.id in asked)
        what = "; ".join(_named(text) for text in missing)
        lines.append(words.message("partial").format(found=found, what=what))
    if claims and evidence and all(item.tool == CLASSIC_TOOL for item in evidence):
        named = words.message("elected").format(
            title=evidence[0].work.get("title") or evidence[0].title, count=len(evidence)
        )
        lines.append(named)
    return "\n".join(lines)


def render_claims(plan: Plan, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> str:
    """Return the claims with their marks; one more claim of the last part only adds text."""
    numbers = numbered_sources(claims)
    by_chunk = {item.chunk_id: item for item in evidence}
    lines: list[str] = []
    headings: dict[str, int] = {}
    for question in plan.questions:
        own = [
            _stated(claim, by_chunk, question.language)
            for claim in claims
            if claim.question_id == question.id
        ]
        if not own:
            continue
        if len(plan.questions) > 1:
            written = repr([(claim.text, claim.verdict, claim.citations) for claim in own])
            if written in headings:  # one may answer several parts: "who sells it and when"
                lines[headings[written]] += f"; {question.text.strip()}"
                continue
            headings[written] = len(lines)
            lines.append(question.text.strip())
        first = by_chunk.get(own[-1].citations[0].chunk_id)
        extracts = first is not None and first.chunk_id in map_summary_rows(evidence)
        words = lexicon(question.language)
        counted = [claim for claim in own if _kind(claim, by_chunk) == ROW]
        if extracts and first is not None:
            row = map_summary_rows(evidence)[first.chunk_id]
            quoted = [claim for claim in own if claim not in counted]
            lines += [marked(claim, numbers) for claim in counted]
            themes = any(call.arguments.get("themes") for call in question.calls)
            opening = [row.text] if question.wants == "list" and not counted else []
            opening.append(words.message("themes" if themes else "extracts"))
            lines += _extracts(quoted, row, by_chunk, numbers, opening, words)
        elif counted or question.wants == "list":
            listed = [claim for claim in own if claim not in counted]
            shown = [f"{_work(claim, by_chunk)}{marked(claim, numbers)}" for claim in listed]
            basis = [marked(claim, numbers) for claim in counted]
            numbered = [f"{place}. {text}" for place, text in enumerate(shown, start=1)]
            leads = len(listed) == 1 and listed[0].confidence == EXACT
            lines += [*shown, *basis] if leads else [*basis, *numbered]
        else:
            text = _joined(own, numbers, by_chunk)
            if own[0].verdict:
                text = f"{words.message(f'verdict_{own[0].verdict}')} {text}"
            lines.append(f"  {text}" if len(plan.questions) > 1 else text)
    answered = {claim.question_id for claim in claims}
    if len(headings) == 1 and len(lines) == 2 and answered >= {one.id for one in plan.questions}:
        return lines[1].strip()
    return "\n".join(lines)


def _extracts(
    claims: Sequence[Claim],
    row: Evidence,
    by_chunk: dict[str, Evidence],
    numbers: dict[str, int],
    opening: Sequence[str],
    words: Lexicon,
) -> list[str]:
    """Return the lines of a summary: a text of one document, a numbered line for each group."""
    labels: dict[str, str] = row.metadata.get(LABELS, {})
    if not claims:
        return []
    if not labels:
        first = by_chunk[claims[0].citations[0].chunk_id]
        titles = dict.fromkeys(by_chunk[c.citations[0].chunk_id].title for c in claims)
        line = words.message("extracts_of").format(title=first.title or first.source)
        chapters = "; ".join(row.metadata.get(CHAPTERS, ()))
        named = [words.message("chapters").format(titles=chapters)] if chapters else []
        return [
            *([*named, line] if len(titles) == 1 else opening),
            _joined(claims, numbers, by_chunk),
        ]
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(labels.get(claim.citations[0].chunk_id, ""), []).append(claim)
    return [
        *opening,
        *(
            f"{place}. {label}: {_joined(own, numbers, by_chunk)}"
            for place, (label, own) in enumerate(groups.items(), start=1)
        ),
    ]


class Help(NamedTuple):
    """Hold what helps after a refusal.

    `near` comes nearest to an answer and stands in `passage`; `similar` are titles like the one
    that was asked for, or those of the chapters where `part` was; `filters` are those of the
    caller, and `unfiltered` tells that the documents answer without them; `rights` are those of who
    asks, `recalled` tells that memory was asked, `stated` is the nearest note, and `spent` what was
    used of which limit.
    """

    near: Nearest | None = None
    passage: Evidence | None = None
    similar: Sequence[str] = ()
    part: str = ""
    filters: Sequence[str] = ()
    unfiltered: bool = False
    rights: AuthContext | None = None
    recalled: bool = False
    stated: Evidence | None = None
    spent: Mapping[str, str] = {"used": "–", "limit": "–"}


def render_noted(language: str, noted: Sequence[str]) -> str:
    """Say what of a turn that asks nothing is kept."""
    return lexicon(language).message("noted").format(text="; ".join(noted))


def render_forget(language: str) -> str:
    """Say how what is noted is deleted."""
    return lexicon(language).message("forget")


def render_remark(language: str) -> str:
    """Say to small talk what there is to ask, and how something is kept."""
    return lexicon(language).message("remark")


def render_nothing_to_keep(language: str) -> str:
    """Say that no answer stands before a turn that asks to keep it."""
    return lexicon(language).message("nothing_to_keep")


def render_unsearched(
    language: str, parts: Sequence[str], why: StopReason, spent: Mapping[str, str]
) -> str:
    """Say which parts of a question were not searched for, and what limit was reached."""
    words = lexicon(language)
    sentence = words.known.messages["stop_reasons"][why.value].format(**spent)
    return words.message("not_searched").format(what="; ".join(map(_named, parts)), why=sentence)


def render_refusal(
    query: Understanding,
    plan: Plan | None,
    tools: Sequence[str],
    why: StopReason,
    given: Help = Help(),  # noqa: B008 - immutable
) -> str:
    """Say honestly that nothing answers, what was looked for, where, and why it ended."""
    words = lexicon(query.language)
    reasons = words.known.messages["stop_reasons"]
    looked_for = [question.query for question in plan.questions] if plan else [query.question]
    sentence = reasons.get(why.value, reasons[StopReason.no_relevant_evidence.value])
    sentence = sentence.format(**given.spent)
    limited = why in LIMITS and why.value in reasons
    first = words.message("not_mentioned" if given.recalled else "refusal")
    opening = words.message("limited").format(why=sentence) if limited else first
    lines = [opening, *_stated_lines(given, words), *_nearest_lines(given, words)]
    if given.similar:
        line = words.message("no_chapter" if given.part else "similar")
        lines.append(
            line.format(part=given.part.replace(",", ", "), titles="; ".join(given.similar))
        )
    places = words.known.messages["tools"]
    where = ", ".join(dict.fromkeys(places.get(one, one) for one in tools)) or "–"
    line = words.message("searched").format(where=where, what="; ".join(looked_for))
    lines.append(re.sub(r"(?<=[.?!。？！])[.。]$", "", line))  # a question has its own mark
    lines += _limit_lines(given, words)
    if not limited:
        lines.append(words.message("stopped").format(why=sentence))
    return "\n".join(lines)


def _stated_lines(given: Help, words: Lexicon) -> list[str]:
    """Show the note that comes nearest, as its owner stated it."""
    note = given.stated
    if note is None:
        return []
    quote = shorten(" ".join(note.text.split()), QUOTE_CHARS)
    return [words.message("stated_near").format(quote=quote, day=note.section)]


def _nearest_lines(given: Help, words: Lexicon) -> list[str]:
    """Show the nearest passage, what it lacks, and a question that is answered."""
    near, item = given.near, given.passage
    if near is None:
        return []
    lines, lacking = [], words.known.messages["lacking"]
    if item is not None:
        above = [item.title or item.source, *item.section.split(SECTIONS)]
        place = place_of(SECTIONS.join(filter(None, dict.fromkeys(above))), item.page)
        quote = shorten(
            " ".join(TAG.sub(" ", item.text[near.start : near.end]).split()), QUOTE_CHARS
        )
        lines.append(words.message("nearest").format(where=plain_text(place), quote=quote))
    if near.lacking:
        lines.append(lacking["anywhere"].format(words="; ".join(near.lacking)))
    elif near.lacking_here:
        lines.append(lacking["here"].format(words="; ".join(near.lacking_here)))
    elif near.evidence_id and near.kind in lacking:
        lines.append(lacking[near.kind])
    if near.better:
        lines.append(words.message("better").format(question=near.better))
    return lines


def _limit_lines(given: Help, words: Lexicon) -> list[str]:
    """Say within which filters and rights was searched; nothing tells of what is hidden."""
    lines, rights = [], given.rights
    if given.filters:
        lines.append(words.message("filtered").format(filters="; ".join(given.filters)))
    unfiltered = [words.message("unfiltered")] if given.unfiltered else []
    if rights is None:
        return [*lines, *unfiltered]
    confined = list(rights.allowed_sources or ())
    confined += [rights.version_policy] if rights.version_policy != ANY else []
    within = [words.message("confined").format(to="; ".join(confined))] if confined else []
    own, theirs = (within, []) if rights.operator else ([], within)
    return [*lines, *own, *unfiltered, words.message("rights"), *theirs]


def _named(text: str) -> str:
    """Return a question as a name in a list: without the mark it ends with."""
    return text.strip().rstrip("?？.。 ")


def _joined(claims: Sequence[Claim], numbers: dict[str, int], evidence: dict[str, Evidence]) -> str:
    """Return claims beside each other; steps, code, rows and signatures on lines of their own."""
    texts = [marked(claim, numbers) for claim in claims]
    apart = any(
        "\n" in one.text or SIGNATURE.fullmatch(one.text) or _kind(one, evidence) in LINES
        for one in claims
    )
    return ("\n" if apart else " ").join(texts)


def _day(note: Evidence, language: str) -> str:
    return format_day(date.fromisoformat(note.updated_at[:DAY]), language)


def _stated(claim: Claim, evidence: dict[str, Evidence], language: str) -> Claim:
    """Return a claim that rests on a note with who stated it, when, and in which words."""
    item = evidence.get(claim.citations[0].chunk_id)
    if item is None or item.kind != NOTE:
        return claim
    quote = claim.citations[0].quote
    who = item.title or lexicon(language).message("you")
    whole = claim.text if claim.text == quote else f"{claim.text} – “{quote}”"
    return claim.model_copy(update={"text": f"{whole} ({who}, {_day(item, language)})"})


def _kind(claim: Claim, evidence: dict[str, Evidence]) -> str:
    item = evidence.get(claim.citations[0].chunk_id)
    return item.kind if item else ""


def _work(claim: Claim, evidence: dict[str, Evidence]) -> str:
    """Name the work an item comes from: title, authors and year are the source's own metadata.

    A claim that begins with the title names it already.
    """
    item = evidence.get(claim.citations[0].chunk_id)
    if item is None or not item.title or claim.text.startswith(item.title):
        return ""
    work = item.work
    authors = work.get("authors")
    by = ", ".join(str(a) for a in authors) if isinstance(authors, list) else str(authors or "")
    year = work.get("year")
    details = ", ".join(str(part) for part in (by, year) if part)
    title = work.get("title") or item.title
    return f"{title} ({details}): " if details else f"{title}: "


class SentenceStream:
    """Check claims as they come and write those that stand.

    What was written is never taken back, so nothing is written after a claim on which only the
    final verification can decide.
    """

    def __init__(
        self,
        plan: Plan,
        evidence: Sequence[Evidence],
        write: Callable[[Any], None],
        mode: Literal["verified", "tokens", "off"],
    ) -> None:
        """Write StreamEvents for claims about this plan that cite this evidence."""
        self._plan = plan
        self._evidence = {item.evidence_id: item for item in evidence}
        self._write = write
        self._mode = mode
        self._kept: list[Claim] = []
        self._heard: list[Claim] = []
        self._text = ""
        self._waits = mode == "off"

    def draft(self, text: str) -> None:
        """Show a piece of the draft, of which nothing has been checked."""
        if self._mode == "tokens":
            self._write(StreamEvent(kind="token", text=text))

    def by_rules(self, draft: Draft) -> None:
        """Show what the rules would answer, as far as it is supported, while a model reads."""
        settled = [settle(one, self._evidence)[0] for one in draft.claims]
        kept = [one for one in settled if one is not None]
        if kept and self._mode != "off":
            text = render_claims(self._plan, kept, list(self._evidence.values()))
            self._write(StreamEvent(kind="rules", text=text))

    def claim(self, claim: Claim) -> None:
        """Show a claim when it is supported; drop it as the verification will when it is not."""
        self._heard.append(claim)
        stands, reason = settle(claim, self._evidence)
        self._waits = self._waits or (stands is None and reason == OTHER_LANGUAGE)
        if stands is None or self._waits:
            return
        self._kept.append(stands)
        # What answers one part may answer the next one, too, and is then written otherwise.
        if len(self._plan.questions) == 1 or len({one.question_id for one in self._kept}) > 1:
            self._show()

    def rest(self, claims: Sequence[Claim]) -> None:
        """Show the claims of a finished draft that were not heard of while it was written."""
        for claim in claims:
            if claim not in self._heard:
                self.claim(claim)
        if self._kept and not self._waits:
            self._show()

    def _show(self) -> None:
        text = render_claims(self._plan, self._kept, list(self._evidence.values()))
        self._waits = not text.startswith(self._text)
        if not self._waits and text != self._text:
            self._write(StreamEvent(kind="sentence", text=text.removeprefix(self._text)))
            self._text = text
