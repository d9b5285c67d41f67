"""Check a claim of the final text against the spans it cites; unsupported means it must go.

The quote is really there, every address and markup of the claim is in it, and the claim says
nothing else than the sentences quoted: `reasoning.claims` compares them word by word. Words of two
languages cannot be compared: such a claim needs the same numbers, and somebody who reads both
languages and finds it supported. Somebody is also asked about words that the evidence lacks, when
nothing else speaks against a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from core.language.detect import UNDETERMINED, detect_language
from core.language.sentences import record_spans, sentence_spans
from core.recall import NOTE
from core.types import Citation, Claim, Evidence
from reasoning.claims.support import Supporting
from reasoning.claims.wording import OTHER_WORDS
from reasoning.rules.answering.headings import LED, headings_of

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# What a client that draws Markdown or HTML would load or offer to open: the way out for text that
# a hostile document wants sent away, so not a character of it may be the model's own.
ACTIVE = re.compile(
    r"(?:\w[\w+.-]*:)?//[^\s)\]>`]+|\bwww\.[^\s)\]>`]+|\b(?:javascript|data|mailto):[^\s)\]>`]+"
    r"|!?\[[^\]\n]*\](?:\([^)\n]*\)?|\[[^\]\n]*\])|<[a-z!?/][^>\n]*>",
    re.IGNORECASE,
)
FOREIGN_NAME = re.compile(r"\b[A-Z][A-Za-z]+")  # in a text of another script
ENDING = ".,;:!?。，；：！？'\"*_"  # what follows an address and is no part of it
OTHER_LANGUAGE = "it is in another language than its quote"

# Says whether quotes support a claim in the given language.
Supports = Callable[[str, Sequence[str], str], bool]


def unsupported_reason(
    claim: Claim, evidence: Mapping[str, Evidence], supports: Supports | None = None
) -> str:
    """Return why a claim is not supported by what it cites, or "" when it is.

    Without `supports` a claim in another language than its quotes is never supported.
    """
    if broken := _broken(claim, evidence):
        return broken
    if _is_value(claim, evidence):
        return ""
    quotes, languages, bare = [], set(), claim.text
    for citation in claim.citations:
        item = evidence[citation.evidence_id]
        quotes.append(_whole_sentences(item, citation))
        lead = next((one for one in headings_of(item) if claim.text.startswith(f"{one}{LED}")), "")
        bare = claim.text[len(lead) + len(LED) :] if lead else bare
        languages.add(item.language)
    return judge(bare, quotes, languages.pop() if len(languages) == 1 else "", supports)


def _broken(claim: Claim, evidence: Mapping[str, Evidence]) -> str:
    """Return why what a claim cites is not there, or "" when it is."""
    for citation in claim.citations:
        item = evidence.get(citation.evidence_id)
        if item is None or item.chunk_id != citation.chunk_id:
            return "it cites evidence that this run did not find relevant"
        if not 0 <= citation.start < citation.end <= len(item.text):
            return "a cited span lies outside its chunk"
        if item.text[citation.start : citation.end] != citation.quote:
            return "a quote differs from the cited span"
    return "" if claim.citations else "it cites nothing"


def settle(
    claim: Claim, evidence: Mapping[str, Evidence], supports: Supports | None = None
) -> tuple[Claim | None, str]:
    """Return a claim as it may stand, None for not at all, and why not as it was cited.

    One that its own citations do not support is cited again, once, from the rest of the evidence;
    not one whose citations are invented.
    """
    reason = unsupported_reason(claim, evidence, supports)
    if reason and not _broken(claim, evidence):
        return _cited_again(claim, evidence), reason
    return (None if reason else claim), reason


def _is_value(claim: Claim, evidence: Mapping[str, Evidence]) -> bool:
    """Tell whether a claim is a part of what one note says, beside which the whole is shown."""
    cited = claim.citations[0]
    is_note = len(claim.citations) == 1 and evidence[cited.evidence_id].kind == NOTE
    return is_note and claim.text in cited.quote and not ACTIVE.search(claim.text)


def _cited_again(claim: Claim, evidence: Mapping[str, Evidence]) -> Claim | None:
    for item in sorted(evidence.values(), key=lambda one: -one.best_grade):
        spans = Supporting([item.text], item.language).spans(claim.text)
        again = claim.model_copy(update={"citations": [item.cited(*span) for span in spans]})
        if spans and not unsupported_reason(again, evidence):
            return again
    return None


def _whole_sentences(item: Evidence, citation: Citation) -> str:
    """Return what is cited with the rest of its first and last sentence, which may deny it."""
    located = record_spans if item.kind == "record" else sentence_spans
    start, end = citation.start, citation.end
    for first, last in located(item.text) if (start, end) != (0, len(item.text)) else ():
        if first < citation.end and last > citation.start:
            start, end = min(start, first), max(end, last)
    return item.text[start:end]


def judge(
    claim: str, quotes: Sequence[str], language: str = "", supports: Supports | None = None
) -> str:
    """Return why texts do not support a claim, or "" when they do."""
    quoted = "\n".join(quotes)
    if any(found.rstrip(ENDING) not in quoted for found in ACTIVE.findall(claim)):
        return "it holds an address or markup that is not in the quote"
    if not any(map(str.isalnum, claim)) and claim.strip() not in quoted:
        return "it has no word, and is not in the quote"
    reason = difference(claim, quotes, language)
    if not reason:
        return ""
    spoken = detect_language(claim)
    own = any(detect_language(quote) == spoken for quote in quotes)
    written = spoken if own else detect_language(quoted)
    if spoken != written and UNDETERMINED not in (spoken, written):
        return _foreign_difference(claim, quotes, supports)
    # Nobody is asked about what says something else, only about words that may say the same.
    if reason.endswith(OTHER_WORDS) and supports is not None and supports(claim, quotes, written):
        return ""
    return reason


def _foreign_difference(claim: str, quotes: Sequence[str], supports: Supports | None) -> str:
    quoted = "\n".join(quotes)
    for kind, pattern in (("number", NUMBER), ("name", FOREIGN_NAME)):
        missing = {*pattern.findall(claim)} - {*pattern.findall(quoted)}
        if missing and (kind == "number" or not claim.isascii()):
            return f"the {kind} {min(missing)} is not in the quote"
    if supports is None:
        return OTHER_LANGUAGE
    if not supports(claim, quotes, detect_language(claim)):
        return f"{OTHER_LANGUAGE}, which was not found to support it"
    return ""


def difference(claim: str, quotes: str | Sequence[str], language: str = "") -> str:
    """Return how a claim differs from its quotes in the same language, or "" for not at all.

    `language` is that of the quotes, as far as it is known.
    """
    texts = [quotes] if isinstance(quotes, str) else quotes
    if Supporting(texts, language).quotes(claim):
        return ""
    if language in ("", UNDETERMINED):
        language = detect_language("\n".join(texts))
        spoken = detect_language(claim)
        known = spoken not in (language, UNDETERMINED)
        if known and any(detect_language(text) == spoken for text in texts):
            texts = [text for text in texts if detect_language(text) in (spoken, UNDETERMINED)]
            language = spoken
    return Supporting(texts, language).difference(claim)
