"""English clauses of time: "… when X was built" asks when that was first."""

from __future__ import annotations

from collections.abc import Sequence

from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import is_verb
from reasoning.rules.parts import Step, asked, slot_name
from reasoning.rules.phrases import Word, span

LEAST_MAIN, LEAST_CLAUSE = 3, 3


def when_steps(text: str, words: Sequence[Word], lists: Lexicon, taken: set[str]) -> list[Step]:
    """Return the steps of a question about the time of another, named event, or none.

    Only "when X was …" at the end of the question is taken apart, since "when X …" may as well
    name a condition.
    """
    places = [
        n
        for n, word in enumerate(words)
        if n >= LEAST_MAIN and word.low in lists.any_of("when_clause", "before_after")
    ]
    if not places:
        return []
    at = places[-1]
    clause = list(words[at + 1 :])
    while clause and clause[-1].kind == "mark":
        clause.pop()
    verbs = [n for n, word in enumerate(clause) if is_verb(word, lists)]
    past = [n for n in verbs if clause[n].low in ("was", "were")]
    if len(past) != 1 or not past[0] or verbs[0] != past[0] or len(clause) < LEAST_CLAUSE:
        return []
    subject, rest = clause[: past[0]], clause[past[0] + 1 :]
    named = any(word.capital for word in subject)
    if not named or not rest or any(word.kind == "mark" for word in clause):
        return []
    slot = slot_name("date", taken)
    first = asked(f"When {clause[past[0]].text} {span(text, subject)} {span(text, rest)}")
    link = words[at].text if words[at].low in lists.any_of("before_after") else "in"
    second = asked(f"{span(text, words[:at]).rstrip(', ')} {link} {{{slot}}}")
    return [Step(first, slot, "date"), Step(second)]
