"""Take a Chinese question apart: "发表《X》的协会的主席" asks for the association first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.parts import Cut, Step

LEAST_CLAUSE = 3
# A clause that names nothing must still say what is done (two characters) to what (two or more).
LEAST_VERB, LEAST_OBJECT = 2, 2
MARK = "？"
_NAMED = re.compile(
    r"《[^《》]+》|“[^“”]+”|「[^「」]+」|[A-Za-z0-9]{2,}|[\u4e00-\u9fff]+·|\{[^{}]+\}"
)
_TITLE = re.compile(r"《[^《》]*》")
# A blank between Chinese characters parts clauses; one beside a number or a Latin word does not.
_BREAK = re.compile(r"[，,。；;、：:？?！!]|(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])")
_MEASURED = re.compile(r"(?:为|是|达|超过|等于|至|到)\s?\d")


def chinese_cuts(text: str, lists: Lexicon) -> Iterator[Cut]:
    """Yield the descriptions of a question that can be asked for alone, the innermost first."""
    masked = _TITLE.sub(lambda title: "《" + "_" * (len(title.group()) - 2) + "》", text)
    for match in _head(lists).finditer(masked):
        start = max((end.end() for end in _BREAK.finditer(masked, 0, match.start())), default=0)
        start = _after_asking(text, start, match.start(), lists)
        clause, noun = text[start : match.start()], match["noun"]
        role = noun in lists.any_of("role")
        joined = text[match.end() :].startswith(tuple(lists.any_of("conjoined", "listed")))
        if joined or not _describes(clause, role, lists):
            continue
        said = text[start : match.end("noun")]
        kind = kind_of_noun(noun, lists)
        name = {"person": "which_person", "place": "which_place"}.get(kind or "", "which_thing")
        question = f"{said}{sorted(lists.any_of(name))[0]}{MARK}"
        yield Cut(start, match.end("noun"), question, noun, kind)


def kind_of_noun(noun: str, lists: Lexicon) -> AnswerKind | None:
    """Return the kind of answer that a noun stands for, None when unknown."""
    if noun in lists.any_of("person_noun"):
        return "person"
    if noun in lists.any_of("place_noun"):
        return "place"
    return "date" if noun in lists.any_of("date_noun") else None


@lru_cache(maxsize=4)
def _head(lists: Lexicon) -> re.Pattern[str]:
    """Match 的 and the noun that it leads to."""
    nouns = lists.any_of("role", "person_noun", "place_noun", "thing_noun", "date_noun")
    body = "|".join(sorted(nouns, key=lambda noun: (-len(noun), noun)))
    return re.compile(rf"的(?P<noun>{body})")


def _after_asking(text: str, start: int, end: int, lists: Lexicon) -> int:
    """Return where a description begins: behind the words that ask before it."""
    asking = rf"{lists.alternatives('question')}(?:[^的]{{0,6}}?[是在])?"
    found = [match.end() for match in re.finditer(asking, text[start:end])]
    return start + max(found, default=0)


def _describes(clause: str, role: bool, lists: Lexicon) -> bool:
    """Tell whether a clause can be searched for: it names something and, without a role, acts."""
    if len(clause) < LEAST_CLAUSE and not role:
        return False
    named = _NAMED.search(clause) is not None
    if role:
        return named
    if _MEASURED.search(clause):
        return True
    if named:
        return any(verb in clause for verb in lists.any_of("clause_verb", "service_verb"))
    if any(word in clause for word in lists.any_of("of", "pronoun", "pointing")):
        return False
    ends = (clause.rfind(verb) + len(verb) for verb in lists.any_of("service_verb"))
    return any(LEAST_VERB <= end <= len(clause) - LEAST_OBJECT for end in ends)


def chinese_comparison(text: str, lists: Lexicon) -> list[Step]:
    """Return one step for each thing of "A和B谁更…" and "A还是B", none when nothing is compared."""
    joiner = "|".join(sorted(lists.any_of("conjoined", "either"), key=len, reverse=True))
    name = r"(?:《[^《》]+》|[A-Za-z][\w .-]*\w|[\u4e00-\u9fff·]{2,12}?)"
    asked = r"(?:谁|哪个|哪部|哪座|哪家|哪一个|哪一部|哪位|哪本)"
    match = re.fullmatch(
        rf"(?P<a>{name})(?:{joiner})(?P<b>{name})[，,]?(?P<rest>{asked}.+?)[？?]?", text
    )
    if match and _compared(match, lists):
        return [Step(f"{match[one]}：{match['rest']}{MARK}") for one in "ab"]
    match = re.fullmatch(
        rf"(?P<rest>{asked}.+?)[，,：:]\s*(?P<a>{name})(?:{joiner})(?P<b>{name})[？?]?", text
    )
    if match and _compared(match, lists):
        return [Step(f"{match[one]}：{match['rest']}{MARK}") for one in "ab"]
    return []


def _compared(match: re.Match[str], lists: Lexicon) -> bool:
    """Tell whether the rest compares, and both things are names and not parts of a sentence."""
    things = match["a"] + match["b"]
    if any(word in things for word in lists.any_of("of", "not_name")):
        return False
    return any(word in match["rest"] for word in lists.any_of("compare"))
