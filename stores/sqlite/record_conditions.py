"""Conditions on the fields of records, as SQL over `record_fields f` beside `documents d`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix
from typing import Literal, NamedTuple

from pydantic import Field

from core.auth import AuthContext
from core.errors import CallerError
from core.language.analysis import HAN, WORD, forms_of, terms
from core.language.words import languages_of
from core.types import FrozenModel
from stores.sqlite.permissions import Parameters

HAS_WORDS = "has_words"  # registered by stores.sqlite.database
MISSING = "missing"
Operator = Literal["=", "!=", "contains", "has", "<", "<=", ">", ">=", "missing"]
# A date as ISO 8601 writes it, or its beginning: such texts compare as dates do.
ISO = re.compile(r"\d{4}(-\d{2}){0,2}$")
LISTED = (";", "|")  # a comma stands within names, too
_ISO_TEXT = "f.folded GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]*'"
# A shorter beginning says nothing: such a word is looked for as it is. Chosen, not measured.
_SHORTEST = 3


class RecordScope(NamedTuple):
    """Say which records a query is about: those a caller may see, of a collection, or of files.

    `sources` are the patterns of a tool's scope, and `files` the files, empty for all.
    """

    auth: AuthContext
    collection_id: int
    sources: Sequence[str] = ()
    files: Sequence[str] = ()


class Condition(FrozenModel):
    """Compare one field; text operators ignore case, the others (and `=` 7) compare numbers.

    `has` means all words of the value in any form; `=` and `!=` take several values, of which any
    counts; `missing` takes "" and means no value. A date or a year is compared with dates as ISO
    8601 writes them. The field `*` is the one that has the words.
    """

    field: str = Field(min_length=1, max_length=100)
    op: Operator = "contains"
    value: str | float | list[str] = Field(
        description="text for = != contains has, a number or a date for the others"
    )

    def __str__(self) -> str:
        """Return the condition as a person reads it."""
        value = f"{self.value:.15g}" if isinstance(self.value, float) else self.value
        shown = " / ".join(value) if isinstance(value, list) else value
        if self.op == MISSING:
            return f"{self.field}: –"
        return f"{self.field}{': ' if self.op == 'has' else f' {self.op} '}{shown}"


def clause(condition: Condition, n: int, parameters: Parameters) -> str:
    """Return a condition as SQL, its values among the parameters."""
    parameters[f"w_field{n}"] = condition.field
    match = f"SELECT 1 FROM record_fields f WHERE f.document = d.id AND f.name = :w_field{n}"
    if condition.op == MISSING:
        return f"NOT EXISTS ({match} AND f.folded <> '')"
    test = _test(condition, f"w_value{n}", parameters)
    found = f"EXISTS ({match} AND {test})"
    return f"(EXISTS ({match}) AND NOT {found})" if condition.op == "!=" else found


def words_test(value: str, name: str, parameters: Parameters) -> str:
    """Return the SQL that finds all words of a text in `f.folded`, in any form of theirs."""
    tests = []
    for place, beginning in enumerate(beginnings(value)):
        parameters[f"{name}_{place}"] = beginning
        tests.append(f"instr(f.folded, :{name}_{place}) > 0")
    parameters[name] = value
    return " AND ".join([*tests, f"{HAS_WORDS}(f.folded, :{name})"])


@lru_cache(maxsize=256)
def beginnings(text: str) -> tuple[str, ...]:
    """Return what each word of a text begins with in every form."""
    return tuple(_beginning(word) for word in WORD.findall(text.casefold()))


def _beginning(word: str) -> str:
    if HAN.search(word):
        return word
    shortest = min((commonprefix([word, form]) for form in forms_of(word)), key=len)
    return shortest if len(shortest) >= _SHORTEST else word


def _test(condition: Condition, name: str, parameters: Parameters) -> str:
    value = condition.value
    if condition.op in ("=", "!=") and not isinstance(value, float):
        return _equal([value] if isinstance(value, str) else value, name, parameters)
    if isinstance(value, list):
        raise CallerError(f"'{condition.op}' takes one value", value=value, hint="or use =")
    text = value if isinstance(value, str) else f"{value:.15g}"
    if condition.op == "has":
        return words_test(text, name, parameters)
    if condition.op == "contains":
        parameters[name] = text.casefold()
        return f"instr(f.folded, :{name}) > 0"
    op = "=" if condition.op == "!=" else condition.op
    parameters[f"{name}t"] = text
    as_date = f"f.number IS NULL AND {_ISO_TEXT} AND substr(f.folded, 1, {len(text)}) {op} :{name}t"
    try:
        parameters[name] = float(value)
    except ValueError:
        if not ISO.match(text):
            raise CallerError(
                f"'{condition.op}' compares numbers and dates", value=value,
                hint="give a number, or a date as in 2024-03-31",
            ) from None  # fmt: skip
        return f"({as_date})"
    as_number = f"f.number {op} :{name}"
    return f"({as_number} OR ({as_date}))" if ISO.match(text) else as_number


def _equal(values: Sequence[str], name: str, parameters: Parameters) -> str:
    names = [f"{name}_{place}" for place in range(len(values))]
    parameters |= {key: value.casefold() for key, value in zip(names, values, strict=True)}
    whole = f"f.folded IN ({', '.join(f':{key}' for key in names)})"
    begun = [
        f"({_ISO_TEXT} AND substr(f.folded, 1, {len(value)}) = :{key})"
        for key, value in zip(names, values, strict=True)
        if ISO.match(value)
    ]
    within = [  # one of several in a cell: "fiction; travel"
        f"instr('{mark} ' || f.folded || '{mark}', '{before}' || :{key} || '{mark}') > 0"
        for key in names
        for mark in LISTED
        for before in (mark, f"{mark} ")
    ]
    return f"({' OR '.join([whole, *begun, *within])})"


LEAST = 3  # letters of a skeleton that tell names apart; chosen, not measured
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_WORD = re.compile(r"[^\W\d_]+")
# Letters that are written in one way or another, or not at all, are alike: vowels, h, w, y.
_SOUNDS = (
    ("дж", "j"), ("sch", "s"), ("sh", "s"), ("ch", "k"), ("ph", "v"), ("ck", "k"),
    ("ts", "s"), ("tz", "s"), ("x", "ks"), ("zh", "j"),
)  # fmt: skip
_LETTERS = {
    ord(letter): sound
    for letters, sound in (
        ("б", "b"), ("в", "v"), ("гґ", "g"), ("д", "d"), ("ж", "j"), ("зсцшщz", "s"), ("кчcq", "k"),
        ("л", "l"), ("м", "m"), ("н", "n"), ("п", "p"), ("р", "r"), ("т", "t"), ("фf", "v"),
    )
    for letter in letters
}  # fmt: skip
_SILENT = re.compile(r"[^bvgdjklmnprst]")


@lru_cache(maxsize=65536)
def skeleton(word: str) -> str:
    """Return the consonants of a name as they sound in any script; "" where they are too few."""
    low = word.casefold()
    for written, sound in _SOUNDS:
        low = low.replace(written, sound)
    heard = _SILENT.sub("", low.translate(_LETTERS))
    single = re.sub(r"(.)\1+", r"\1", heard)
    return single if len(single) >= LEAST else ""


def sounds_like(value: str, name: str) -> bool:
    """Tell whether a value has a word that sounds like each word of a name."""
    if not _CYRILLIC.search(value + name):
        return False
    held = {skeleton(word) for word in _WORD.findall(value)} - {""}
    heard = [
        {skeleton(form) for form in (word, *_lemmas(word))} - {""} for word in _WORD.findall(name)
    ]
    long = [one for one in heard if one]
    return bool(long) and all(one & held for one in long)


def _lemmas(word: str) -> list[str]:
    languages = languages_of(word) if _CYRILLIC.search(word) else ()
    return [term for one in languages for term in terms(word, one)]
