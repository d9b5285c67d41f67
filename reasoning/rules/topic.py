"""What a question is about: its entities, and the phrase a follow-up leaves out."""

from __future__ import annotations

import re

from core.language.analysis import analyze, content_terms
from core.language.cues import stopwords
from core.language.entities import entities as names_in
from reasoning.rules.lexicon import Lexicon

WORD = re.compile(r"[^\W_][\w'’.+#/-]*[^\W_]|[^\W_]", re.UNICODE)
QUOTED = re.compile(r"[\"“«„‘「『《]([^\"”»“’」』》]{2,60})[\"”»“’」』》]")
YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
ELLIPTICAL_TERMS = 2  # chosen, not measured


def entities(text: str, words: Lexicon) -> list[str]:
    """Return names in a question, and what it quotes and years; the longest of those inside."""
    found = [match.group(1).strip() for match in QUOTED.finditer(text)]
    found += [one.text for one in names_in(text, words.language)]
    found += YEAR.findall(text)
    unique = list(dict.fromkeys(name for name in found if len(name) > 1))
    return [one for one in unique if not any(one != o and f" {one} " in f" {o} " for o in unique)]


def topic(text: str, words: Lexicon) -> str:
    """Return the phrase a question is about, for later clauses that leave it out.

    The question is cut at stop words and question words; the last run of content words that holds
    an entity wins, else the last run (in Chinese the first).
    """
    runs = content_runs(text, words)
    names = [name.casefold() for name in entities(text, words)]
    named = [run for run in runs if any(name in run.casefold() for name in names)]
    if named:
        return named[-1]
    return runs[-1] if runs else ""


def asked_about(text: str, words: Lexicon) -> str:
    """Return what a question asks about, without the word that asks: "was the pump repaired"."""
    opening = words.search("question", text)
    before = text[: opening.start()].strip() if opening else text
    if opening is None or (before and before.casefold() not in words.any_of("preposition")):
        return ""
    return text[opening.end() :].strip()


def focus(text: str, words: Lexicon) -> str:
    """Return the first thing a question names, such as "salary" in "what is the salary of …"."""
    return next(iter(content_runs(text, words)), "")


def content_runs(text: str, words: Lexicon) -> list[str]:
    """Return the runs of content words of a text, as written.

    In Chinese the first comes last, as "A 的 B" is the B of A: what a text is about comes first.
    """
    stripped = text
    for name in ("question", "auxiliary", "filler", "recent", "pronoun"):
        stripped = words.remove(stripped.replace("|", " "), name).replace("  ", " | ")
    common = stopwords(words.language)
    runs: list[str] = []
    start: int | None = None
    end = 0
    for token in analyze(stripped, words.language):
        surface = stripped[token.start : token.end]
        broken = "|" in stripped[end : token.start] or re.search(
            r"[,，。?？!！;；:：()（）]", stripped[end : token.start]
        )
        if start is not None and (broken or surface.casefold() in common):
            runs.append(stripped[start:end].strip())
            start = None
        if surface.casefold() not in common:
            start = token.start if start is None else start
            end = max(end, token.end)
        else:
            end = max(end, token.end)
    if start is not None:
        runs.append(stripped[start:end].strip())
    found = [" ".join(run.split()) for run in runs if run.strip()]
    return found if words.known.spaced else found[::-1]


def is_elliptical(text: str, words: Lexicon) -> bool:
    """Return whether a clause needs an earlier one to be understood."""
    if words.starts("opener", text):
        return True
    if entities(text, words):
        return False
    stripped = words.remove(text, "recent", "filler")
    short = len(set(content_terms(stripped, words.language))) <= ELLIPTICAL_TERMS
    return short or words.search("pronoun", text) is not None
