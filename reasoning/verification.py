"""Check a claim of the final text against the spans it cites; unsupported means it must go.

The checks are cheap and strict: the quote is really there, every number, name, address and markup
of the claim is in the quotes, negation agrees, and most of the content words of each of its
sentences are in the quotes. Words of two languages cannot be compared: such a claim needs the same
numbers, and somebody who reads both languages and finds it supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from core.language.analysis import content_terms, terms
from core.language.cues import stopwords
from core.language.detect import UNDETERMINED, detect_language
from core.language.sentences import sentence_spans
from core.types import Claim, Evidence
from reasoning.rules.answering.headings import LED, headings_of
from reasoning.rules.lexicon import lexicon

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
WORD = re.compile(r"[^\W_][\w'’-]+")
# What a client that draws Markdown or HTML would load or offer to open: the way out for text that
# a hostile document wants sent away, so not a character of it may be the model's own.
ACTIVE = re.compile(
    r"(?:\w[\w+.-]*:)?//[^\s)\]>`]+|\bwww\.[^\s)\]>`]+|\b(?:javascript|data|mailto):[^\s)\]>`]+"
    r"|!?\[[^\]\n]*\](?:\([^)\n]*\)?|\[[^\]\n]*\])|<[a-z!?/][^>\n]*>",
    re.IGNORECASE,
)
ENDING = ".,;:!?。，；：！？'\"*_"  # what follows an address and is no part of it
LEAST_OVERLAP = 0.6  # chosen, not measured
OTHER_LANGUAGE = "it is in another language than its quote"

# Says whether quotes support a claim in the given language.
Supports = Callable[[str, Sequence[str], str], bool]


def unsupported_reason(
    claim: Claim, evidence: Mapping[str, Evidence], supports: Supports | None = None
) -> str:
    """Return why a claim is not supported by what it cites, or "" when it is.

    Without `supports` a claim in another language than its quotes is never supported.
    """
    if not claim.citations:
        return "it cites nothing"
    quotes, languages, bare = [], set(), claim.text
    for citation in claim.citations:
        item = evidence.get(citation.evidence_id)
        if item is None or item.chunk_id != citation.chunk_id:
            return "it cites evidence that this run did not find relevant"
        if not 0 <= citation.start < citation.end <= len(item.text):
            return "a cited span lies outside its chunk"
        if item.text[citation.start : citation.end] != citation.quote:
            return "a quote differs from the cited span"
        quotes.append(citation.quote)
        lead = next((one for one in headings_of(item) if claim.text.startswith(f"{one}{LED}")), "")
        bare = claim.text[len(lead) + len(LED) :] if lead else bare
        languages.add(item.language)
    quoted = "\n".join(quotes)
    if any(found.rstrip(ENDING) not in quoted for found in ACTIVE.findall(claim.text)):
        return "it holds an address or markup that is not in the quote"
    reason = difference(bare, quoted, languages.pop() if len(languages) == 1 else "")
    spoken, written = detect_language(claim.text), detect_language(quoted)
    if not reason or spoken == written or UNDETERMINED in (spoken, written):
        return reason
    return _foreign_difference(claim.text, quotes, supports)


def _foreign_difference(claim: str, quotes: Sequence[str], supports: Supports | None) -> str:
    missing = set(NUMBER.findall(claim)) - set(NUMBER.findall("\n".join(quotes)))
    if missing:
        return f"the number {sorted(missing)[0]} is not in the quote"
    if supports is None:
        return OTHER_LANGUAGE
    if not supports(claim, quotes, detect_language(claim)):
        return f"{OTHER_LANGUAGE}, which was not found to support it"
    return ""


def difference(claim: str, quoted: str, language: str = "") -> str:
    """Return how a claim differs from its quotes in the same language, or "" for not at all.

    `language` is that of the quotes, as far as it is known.
    """
    language = language if language not in ("", UNDETERMINED) else detect_language(quoted)
    present = set(terms(quoted, language))
    missing = _numbers(claim, language) - _numbers(quoted, language)
    if missing:
        return f"the number {sorted(missing)[0]} is not in the quote"
    written = {word.casefold() for word in WORD.findall(quoted)}
    for name in (word for word in WORD.findall(claim) if word[0].isupper()):
        known = name.casefold() in written | stopwords(language)
        if not known and not present.issuperset(terms(name, language)):
            return f"the name {name} is not in the quote"
    denied = [lexicon(language).search("negation", text) is None for text in (claim, quoted)]
    if denied[0] != denied[1] and claim not in quoted:
        return "the claim and the quote differ in negation"
    for start, end in sentence_spans(claim):  # one that is made up hides among those that are not
        stated = set(content_terms(claim[start:end], language))
        shared = stated & present
        if stated and len(shared) / len(stated) < LEAST_OVERLAP:
            return f"only {len(shared)} of {len(stated)} words are in the quote"
    return ""


def _numbers(text: str, language: str) -> set[str]:
    """Return the numbers of a text, in digits and in words."""
    in_words = lexicon(language).all_of("numeral", text)
    return {*NUMBER.findall(text), *(word.group().casefold() for word in in_words)}
