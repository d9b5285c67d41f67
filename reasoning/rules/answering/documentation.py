"""What documentation answers with: the signature of a name, a sentence, code as a block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from core.language.analysis import analyze
from core.language.cues import cues
from core.language.identifiers import ERROR, find_identifiers, is_identifier
from core.language.orders import gives_orders
from core.language.passages import CODE_KIND, FENCED, ITEM, Span, spans_of
from core.metadata import version_order
from core.types import Claim, Evidence
from reasoning.rules.answering.blocks import COLONS, MOST_CHARACTERS, in_context, quoted
from reasoning.rules.answering.features import terms_of
from reasoning.rules.answering.headings import LED, SECTIONS
from reasoning.rules.answering.relevance import VERSION_NOTE, Sentence
from reasoning.rules.answering.wanted import QueryTerms
from reasoning.rules.lexicon import lexicon
from reasoning.rules.values.versions import is_other_framework, is_other_version

MOST_BETWEEN = 120  # characters that announce code behind a sentence; chosen, not measured
MOST_LINES = 40  # of code; more is not shown with an answer; chosen, not measured
# Words before a name that say what it is.
KINDS = r"(?:(?:class|def|function|method|property|async|static|exception)\s+)*"
HEADING = re.compile(rf"[`*\s]*{KINDS}(?P<name>[A-Za-z_$][\w$.]*)\s*(?P<call>\()?")
WORD = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*(?:\(\))?")
TICKED = re.compile(r"`([^`\n]+)`")
# What is asked of a name, by the list of words that asks it, as its text says it.
ASPECTS = ("asks_return", "asks_error")
CALLS = ("asks_call", *ASPECTS)
GOING = "Deprecated since"  # how a note of VERSION_NOTE begins that says what to use instead
LABEL = re.compile(r"[^\W\d_][^\n.]{0,40}[:：]$")


class Definition(NamedTuple):
    """Hold the evidence that explains a name; its signature is text[start:end], or the heading.

    A section that only is called as a name has none.
    """

    item: Evidence
    name: str
    start: int
    end: int
    heading: str
    about: frozenset[str] = frozenset()  # terms of what is asked of it besides


def asks_for_code(wanted: QueryTerms) -> bool:
    """Tell whether a question asks how to do or call something, or for an example."""
    called = lexicon(wanted.language).found("asks_call", wanted.text)
    return wanted.howto or called or cues(wanted.language).found("example", wanted.text)


def asked_definitions(wanted: QueryTerms, evidence: Iterable[Evidence]) -> list[Definition]:
    """Return the definitions of the one name that a question is about, the most exact ones.

    It asks what that is or does, takes, returns or raises, or how it is used; or of it what its
    passage says in the same words. The name may be one of its parameters. A word of prose ("get")
    is no name where it asks how to do something.
    """
    defined = [
        one
        for item in evidence
        if (one := definition(item)) is not None
        and not is_other_version(wanted.written, wanted.language, item)
        and not is_other_framework(wanted.frameworks, item)
    ]
    words = lexicon(wanted.language)
    plain = wanted.defines or any(words.found(one, wanted.text) for one in CALLS)
    found: list[tuple[int, Definition]] = []
    for match in WORD.finditer(wanted.text) if defined else ():
        named = match.start() and match.group()[0].isupper()
        if not (plain or named or is_identifier(match.group())):
            continue
        asked = match.group().removesuffix("()").split(".")
        rest = _rest(wanted, match.start(), match.end())
        for one in defined:
            common = _common(asked, one.name.split(".")) or _takes(one, match.group())
            if common and rest <= _terms(one):
                found.append((common, one._replace(about=rest)))
    most = max((common for common, _ in found), default=0)
    return [one for common, one in found if common == most]


def newest(defined: Sequence[Definition]) -> Definition:
    """Return the first definition, or what its framework's newest version says of that name."""
    first = defined[0]
    framework = first.item.metadata.get("framework")
    same = [
        one
        for one in defined
        if one.name == first.name and one.item.metadata.get("framework") == framework
    ]
    return max(same, key=lambda one: version_order(one.item.version))


def _terms(one: Definition) -> frozenset[str]:
    return terms_of(f"{one.item.title} {one.item.section} {one.item.text}", one.item.language)


def _takes(one: Definition, name: str) -> int:
    """Return 1 where a signature has a name of code as a parameter, else 0."""
    if not (is_identifier(name) and name.isidentifier()):
        return 0
    return int(bool(re.search(rf"[(,*]\s*{name}\s*[=:,)]", one.item.text[one.start : one.end])))


def _rest(wanted: QueryTerms, start: int, end: int) -> frozenset[str]:
    """Return the terms of what a question says besides text[start:end]."""
    rest = f"{wanted.text[:start]} {wanted.text[end:]}"
    for name in ("definition", "code", "example"):
        pattern = cues(wanted.language).alternatives(name)
        rest = re.sub(pattern, " ", rest, flags=re.IGNORECASE)
    rest = lexicon(wanted.language).remove(rest, "explains", "asks_use", "asks_default", *CALLS)
    return frozenset(one.term for one in analyze(rest, wanted.language) if not one.is_function)


def _asks_only(wanted: QueryTerms, start: int, end: int) -> bool:
    """Tell whether a question names nothing but text[start:end]."""
    return not _rest(wanted, start, end)


def _common(asked: Sequence[str], name: Sequence[str]) -> int:
    """Return how many last parts two dotted names share, 0 unless one is the end of the other."""
    length = min(len(asked), len(name))
    return length if asked[-length:] == name[-length:] else 0


def definition(item: Evidence) -> Definition | None:
    """Return what a passage of documentation defines: its heading is a name."""
    last = item.section.rsplit(SECTIONS, 1)[-1]
    heading = HEADING.match(last)
    if heading is None or item.kind in (CODE_KIND, "record", "table"):
        return None
    name = heading["name"].strip(".")
    if heading["call"]:
        return Definition(item, name, 0, 0, last)
    if heading.end() < len(last.rstrip("`* ")):
        return None
    short = re.escape(name.rsplit(".", 1)[-1])
    line = re.compile(rf"^[`*\s]*{KINDS}(?:[\w$]+\.)*{short}[`*]*(?:\(.*|\s*)$", re.M)
    inside = code_blocks(item)
    for match in line.finditer(item.text):
        if not any(start <= match.start() < end for start, end in inside):
            start = match.start() + len(match.group()) - len(match.group().lstrip())
            return Definition(item, name, start, match.start() + len(match.group().rstrip()), "")
    return Definition(item, name, 0, 0, "") if is_identifier(name) else None


def says_identifier(wanted: QueryTerms, item: Evidence) -> bool:
    """Tell whether a passage says one of the identifiers that a question has, by their last parts.

    What is said of another name answers no question about this one. True where it has none. A
    word with capitals inside, as "PyTorch", may name what all of it is about: it counts alone.
    """
    names = [
        name
        for name in find_identifiers(wanted.text)
        if not name.isalnum() or _asks_only(wanted, *_place(wanted.text, name))
    ]
    parts = [WORD.findall(name) for name in names]
    last = {found[-1].removesuffix("()").rpartition(".")[2] for found in parts if found}
    if not last:
        return True
    words = WORD.findall(f"{item.title} {item.section} {item.text}")
    return not last.isdisjoint(
        part for word in words for part in word.removesuffix("()").split(".")
    )


def _place(text: str, name: str) -> Span:
    return text.index(name), text.index(name) + len(name)


def code_blocks(item: Evidence) -> list[Span]:
    """Return where the blocks of code of a passage stand, with their fences."""
    found = [match.span() for match in FENCED.finditer(item.text)]
    if item.kind == CODE_KIND and not found:
        return [(0, len(item.text))]
    return found


def defining_claims(wanted: QueryTerms, one: Definition) -> list[Claim]:
    """Return the signature of a name, what it is for, what is asked of it, or else its example.

    A beginner gets more words and no signature, an expert parameters and example as well.
    """
    item, asked, words = one.item, lexicon(wanted.language), lexicon(one.item.language)
    level = wanted.level
    beside = wanted.text.replace(one.name, " ")  # "lib.errors.Lost" asks for no error
    aspect = next((name for name in ASPECTS if asked.found(name, beside)), "")
    prose, lists = _prose(item, one.end), _listed(item, one.end)
    unsigned = not one.end or (level == "beginner" and not aspect and prose)
    claims = [] if unsigned else [_signature(item, one.start, one.end)]
    shown = item.text[one.start : one.end].lstrip("`*")
    raised = shown.startswith("exception ") or ERROR.fullmatch(one.name) is not None
    telling = [one for one in (*lists, *prose) if aspect and words.found(aspect, _at(item, *one))]
    if telling or (aspect and not one.about):
        claims += [quoted(item, *span) for span in (telling or prose)[:2]]
    elif one.about and one.end and not raised:
        claims += [quoted(item, *span) for span in _telling(one)]
    else:
        # Who sees no signature reads more of what is said; what is raised comes with its remedy.
        few = one.end and level != "beginner" and not raised
        first = prose[: 1 if few else 2]
        going = [span for span in prose if _at(item, *span).startswith(GOING)]
        claims += [quoted(item, *span) for span in dict.fromkeys([*first, *going[:1]])]
        called = asked.found("asks_call", wanted.text)
        if called or level == "expert":
            claims += [quoted(item, *span) for span in lists[:1]]
        if not called:
            claims += [_code(item, *span) for span in code_blocks(item) if _is_short(item, span)][
                :1
            ]
    if one.heading and claims and level != "beginner":  # the heading has the signature
        claims[0] = claims[0].model_copy(update={"text": f"{one.heading}{LED}{claims[0].text}"})
    return claims


def name_defined(
    claims: Sequence[Claim], chosen: Sequence[Sentence], wanted: QueryTerms
) -> list[Claim]:
    """Return claims behind the signature or name that they explain, where nothing else says it."""
    one = definition(chosen[0].evidence) if claims and chosen else None
    if one is None or not is_identifier(one.name):
        return [*claims]
    short = re.escape(one.name.rsplit(".", 1)[-1])
    shown = "\n".join([wanted.text, *(claim.text for claim in claims)])
    if re.search(rf"(?<!\w){short}(?!\w)", shown):
        return [*claims]
    if one.end:
        return [_signature(one.item, one.start, one.end), *claims]
    shown = one.heading or f"`{one.name}`"
    first = claims[0].model_copy(update={"text": f"{shown}{LED}{claims[0].text}"})
    return [first, *claims[1:]]


def _telling(one: Definition) -> list[Span]:
    """Return the entry of a list, or else the sentence, that says most of what is asked."""
    text = one.item.text

    def shared(span: Span) -> tuple[int, bool]:
        common = len(one.about & terms_of(text[slice(*span)], one.item.language))
        return common, bool(common and ITEM.match(text, text.rfind("\n", 0, span[0]) + 1))

    spans = [span for span in _sentences_outside(one.item) if span[0] >= one.end]
    best = max(spans, key=shared, default=None)
    return [best] if best is not None and shared(best)[0] else _prose(one.item, one.end)[:1]


def _at(item: Evidence, start: int, end: int) -> str:
    return item.text[start:end]


def _signature(item: Evidence, start: int, end: int) -> Claim:
    claim = quoted(item, start, end)
    text = claim.text.strip("`* ")
    return claim.model_copy(update={"text": f"`{text}`" if "`" not in text else text})


def _prose(item: Evidence, start: int) -> list[Span]:
    """Return the sentences behind a place that are neither of a list nor of code.

    That a thing is new or goes explains nothing: it comes last.
    """
    found = [
        (first, last)
        for first, last in _sentences_outside(item)
        if first >= start
        and not ITEM.match(item.text, first)
        and not item.text[first:last].endswith(COLONS)
    ]
    return sorted(found, key=lambda span: VERSION_NOTE.match(item.text, span[0]) is not None)


def _listed(item: Evidence, start: int) -> list[Span]:
    """Return the lists behind a place, each with the label above it ("Parameters:")."""
    inside = code_blocks(item)
    found: list[Span] = []
    begun, last = -1, -1
    place = 0
    for line in item.text.splitlines(keepends=True):
        shown = line.rstrip()
        end = place + len(shown)
        code = any(one <= place < other for one, other in inside)
        if place < start or code or not shown:
            place += len(line)
            continue
        if LABEL.fullmatch(shown):
            if last > begun >= 0:
                found.append((begun, last))
            begun, last = place, -1
        elif ITEM.match(shown):
            begun, last = (place if begun < 0 else begun), end
        elif last < 0 or not line.startswith(" "):
            if last > begun >= 0:
                found.append((begun, last))
            begun, last = -1, -1
        place += len(line)
    if last > begun >= 0:
        found.append((begun, last))
    return [(first, min(end, _whole(item.text, first, end))) for first, end in found]


def _whole(text: str, start: int, end: int) -> int:
    """Return the end of the last whole line that a reader takes in at once."""
    if end - start <= MOST_CHARACTERS:
        return end
    return text.rfind("\n", start, start + MOST_CHARACTERS)


def _is_short(item: Evidence, span: Span) -> bool:
    shown = item.text[slice(*span)]
    return shown.count("\n") <= MOST_LINES and not gives_orders(item.text, *span)


def _code(item: Evidence, start: int, end: int) -> Claim:
    """Return the claim of a block of code, to the letter and between fences."""
    citation = item.cited(start, end)
    text = citation.quote
    fenced = text if FENCED.fullmatch(text) else f"```\n{text}\n```"
    return Claim(text=fenced, citations=[citation])


def example_claims(wanted: QueryTerms, lead: Sentence, evidence: Sequence[Evidence]) -> list[Claim]:
    """Return what a likely sentence says with a block of code, and the signature it explains.

    A line of code brings its whole block with what announces it. Other code follows the sentence
    directly, or has a name that this or the question says: in its passage, then in its section.
    None without either.
    """
    item, own = lead.evidence, definition(lead.evidence)
    inside = next((one for one in code_blocks(item) if one[0] <= lead.start < one[1]), None)
    if inside is not None and _is_short(item, inside):
        before = [one for one in _sentences_outside(item) if one[1] <= inside[0]]
        return [*(quoted(item, *one) for one in before[-1:]), _code(item, *inside)]
    claims = [_signature(item, own.start, own.end)] if own is not None and own.end else []
    shown: list[Claim] = []
    if own is None or not lexicon(wanted.language).found("asks_call", wanted.text):
        shown = _examples(wanted, lead, evidence)[:1]  # else an argument is asked for
    if not (claims or shown):
        return []
    if own is None or lead.start >= own.end or not claims:
        span = _with_announcement(wanted, lead) if shown else (lead.start, lead.end)
        claims.append(quoted(item, *span))
    return [*claims, *shown]


def _with_announcement(wanted: QueryTerms, lead: Sentence) -> Span:
    """Return a sentence with its list, or with what announces the code behind it ("Run:")."""
    item, several = lead.evidence, wanted.howto or wanted.enumerates
    start, end = in_context(item, lead.start, lead.end, code=False, items=several)
    if gives_orders(item.text, start, end):
        start, end = lead.start, lead.end
    first = min((one for one, _ in code_blocks(item) if one >= lead.end), default=-1)
    if first >= 0 and _is_announced(item, lead.end, first):
        end = first
    end = min([end, *(one for one, _ in code_blocks(item) if lead.end <= one < end)])
    return start, len(item.text[:end].rstrip())


def _is_announced(item: Evidence, end: int, first: int) -> bool:
    """Tell whether nothing stands between a sentence and code, or what announces that."""
    between = item.text[end:first].strip()
    return not between or (between.endswith(COLONS) and len(between) <= MOST_BETWEEN)


def _examples(wanted: QueryTerms, lead: Sentence, evidence: Sequence[Evidence]) -> list[Claim]:
    """Return the blocks of code that show what a sentence says, the nearest first."""
    item = lead.evidence
    names = set(TICKED.findall(lead.text)) | set(find_identifiers(f"{lead.text} {wanted.text}"))
    last = {parts[-1] for name in names if (parts := WORD.findall(name.removesuffix("()")))}
    found = [(item, one) for one in code_blocks(item)]
    found.sort(key=lambda one: (one[1][0] < lead.end, abs(one[1][0] - lead.end)))
    section = (item.document_key, item.section)
    others = [one for one in evidence if (one.document_key, one.section) == section]
    others.sort(key=lambda one: (one.ordinal < item.ordinal, abs(one.ordinal - item.ordinal)))
    found += [
        (one, span) for one in others if one.chunk_id != item.chunk_id for span in code_blocks(one)
    ]
    return [
        _code(one, *span)
        for one, span in found
        if _is_short(one, span)
        and (
            (one is item and span[0] >= lead.end and _is_announced(item, lead.end, span[0]))
            or last.intersection(
                part for name in WORD.findall(_at(one, *span)) for part in name.split(".")
            )
            or wanted.matched(terms_of(_at(one, *span), wanted.language))
        )
    ]


def _sentences_outside(item: Evidence) -> list[Span]:
    """Return the sentences of a passage outside its code."""
    inside = code_blocks(item)
    return [
        (first, last)
        for first, last in spans_of(item.text, item.kind)
        if not any(one <= first < other for one, other in inside)
        and not gives_orders(item.text, first, last)
    ]
