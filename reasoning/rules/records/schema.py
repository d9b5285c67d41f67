"""The fields of a collection's records, and what a question has been read to say of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import islice, takewhile
from os.path import commonprefix
from typing import Any

from core.language.analysis import terms
from core.metadata import humanise
from core.types import FieldInfo, RecordTable, ToolSpec
from languages.language import known_languages
from reasoning.rules.records.phrases import (
    CYRILLIC,
    HAN,
    Meaning,
    PhraseMatch,
    Phrases,
    general_phrases,
    is_common,
    plurals,
    tables,
)

_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_CODE = re.compile(r"[A-Z]{1,6}[-_/ ]?\d+")
_SPOKEN = re.compile(rf"(.+) ({'|'.join(known_languages())})")
_DATE = re.compile(r"\d{4}-\d{2}")
MOST_WORDS = 5  # of a value that a question says; chosen, not measured
GENERAL_KINDS = ("record", "book")  # records of any kind, and of works
TABLE_SIGN = "#"  # in what a table in a file is called, between the file and its own name
NAMES = ("title", "id")  # what a record is called, not what is known of it
AKIN = "akin"  # the value of the meaning of a word that is like the name of a field
# Chosen, not measured:
LEAST_NOUN = 3  # letters of an English plural, at least, of a heading
SHARED = 4  # letters that "supply" and "supplier" must share, all but their endings
# Chosen, not measured:
DISTINCT_FIRST = 0.6  # the same of the first column of tables in documents
DISTINCT = 0.9  # the share of records that have another value, where it is their name


def canonical(name: str) -> str:
    """Return what the field of a name is in every collection ("author"), "" where it is unknown.

    The name as a whole decides, else its last known word: "customer_city" is a city.
    """
    return _canonical(label_of(name))


@lru_cache(maxsize=4096)
def _canonical(label: str) -> str:
    names = _canonical_phrases()
    label = label.rstrip("0123456789 ").casefold()  # "isbn13"
    # As it stands before its inflections: "рік" is a year, and "років" an age.
    exact = next((name for name, texts in tables()["fields"].items() if label in texts), "")
    known = [one for one in names.scan(label) if one.meanings]
    return exact or (known[-1].meanings[0].name if known else "")


@cache
def _canonical_phrases() -> Phrases:
    listed = [
        (str(t), Meaning("field", name))
        for name, texts in tables()["fields"].items()
        for t in texts
    ]
    return Phrases([*listed, *plurals(listed)])


def word_stem(word: str) -> str:
    """Return the stem of an English word, itself where it is none."""
    return next(iter(terms(word, "en")), word)


def label_of(name: str) -> str:
    """Return the name of a field in words: "metadata.num_pages" is "num pages"."""
    return humanise(name.rsplit(".", 1)[-1])


def stem_of(name: str) -> tuple[str, str]:
    """Return the name of a field in words, and the language that ends it: "name_zh"."""
    match = _SPOKEN.fullmatch(label := label_of(name))
    return (match[1], match[2]) if match else (label, "")


def spelled_in_cyrillic(word: str) -> Iterator[str]:
    """Yield what a word in Latin letters is by the spelling of each language in Cyrillic ones."""
    for one in known_languages().values():
        letters = one.read("records").get("letters", {}) if word.isascii() else {}
        if letters:
            longest = sorted(letters, key=len, reverse=True)
            found = re.findall("|".join([*longest, "."]), word)
            yield "".join(letters.get(one, one) for one in found)


def file_words(file: str) -> str:
    """Return the name of a file in words, without its folder and ending."""
    return humanise(file.rsplit("/", 1)[-1].rsplit(".", 1)[0]).casefold()


def _without_unit(label: str) -> str:
    """Leave out the unit that ends a label: "day rate eur" is the day rate."""
    rest, _, last = label.rpartition(" ")
    return rest if last.casefold() in _units() else label


@cache
def _units() -> frozenset[str]:
    units = (one.read("claims").get("units", ()) for one in known_languages().values())
    return frozenset(str(name) for listed in units for unit in listed for name in unit)


def is_date(info: FieldInfo) -> bool:
    """Tell whether a field's values are years or dates."""
    shown = info.examples[:20]
    if info.type == "number":
        known = canonical(info.name)
        dated = known in tables()["dates"] or (not known and info.values >= LEAST_YEARS)
        return dated and all(_YEAR.fullmatch(one) for one in shown)
    return bool(shown) and all(_DATE.match(one) for one in shown)


LEAST_YEARS = 3  # different ones, of a column whose name tells nothing ("built"); chosen


class RecordSchema:
    """Hold the fields and tables of a record tool, with the phrases that name them."""

    def __init__(self, spec: ToolSpec) -> None:
        """Read the names and values that the tool knows."""
        self.spec = spec
        self.canonical = {info.name: canonical(info.name) for info in spec.fields}
        self.fields = {info.name: info for info in spec.fields}
        self.dates = [info.name for info in spec.fields if is_date(info)]
        order = [*tables()["dates"], *self.canonical.values()]
        self.dates.sort(key=lambda name: order.index(self.canonical[name]))
        telling = [name for name in self.fields if self.tells(name)]
        self.files = [one for one in spec.tables if set(one.fields) & set(telling)]
        self.phrases = Phrases(self._named(), general_phrases())
        # Passages that are kept as JSON lines have an id and a title, and are no records to count.
        self.prose = spec.others + sum(t.records for t in spec.tables if t not in self.files)
        self._alone: dict[tuple[str, ...], RecordSchema] = {}

    @property
    def is_within(self) -> bool:
        """Tell whether all records are rows of tables within documents, which hold them as text."""
        return all(TABLE_SIGN in one.file for one in self.files)

    def alike(self, files: Sequence[str]) -> list[tuple[str, ...]]:
        """Return files in groups, each of those whose records have the same fields."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for one in self.files:
            if one.file in files:
                groups.setdefault(tuple(sorted(one.fields)), []).append(one.file)
        return [tuple(group) for group in groups.values()]

    def with_word(self, files: Sequence[str], word: str) -> list[str]:
        """Return those files that have a word in their names, which may be a table's heading."""
        word = word.casefold()
        whole = HAN.search(word) is not None  # words of which nothing sets apart
        named = ((one, one.casefold()) for one in files)
        return [one for one, low in named if word in (low if whole else re.split(r"[\W_]+", low))]

    def alone(self, files: tuple[str, ...]) -> RecordSchema:
        """Return the schema of the records of files that have the same fields."""
        if len(files) == len(self.files):
            return self
        if files not in self._alone:
            own = [one for one in self.files if one.file in files]
            fields = [info for info in self.spec.fields if info.name in own[0].fields]
            update = {"fields": fields, "tables": own, "others": self.prose}
            self._alone[files] = RecordSchema(self.spec.model_copy(update=update))
        return self._alone[files]

    def scan(self, text: str) -> list[PhraseMatch]:
        """Cut a question into phrases; a word akin to a field's name stands for the field."""
        found = self.phrases.scan(text)
        return [self._guessed(one) if self._is_unknown(one) else one for one in found]

    def _is_unknown(self, one: PhraseMatch) -> bool:
        """Tell whether a phrase is no more than a noun that no file of records is of, if that."""
        nouns = one.of("noun")
        return len(nouns) == len(one.meanings) and not any(self.of_noun(m.name) for m in nouns)

    def _guessed(self, one: PhraseMatch) -> PhraseMatch:
        # Every sentence begins with a capital; elsewhere it is a name.
        word = one.text if one.start else one.text[:1].lower() + one.text[1:]
        if not word.islower() or HAN.search(word):
            return one
        near: list[tuple[int, Meaning]] = []
        for name in self.fields:
            known = [str(t) for t in tables()["fields"].get(self.canonical[name], ())]
            for label in (*label_of(name).casefold().split(), *(t for t in known if " " not in t)):
                least = max(SHARED, min(len(label), len(word)) - 2)
                if (shared := len(commonprefix([label, word]))) >= least:
                    near.append((-shared, Meaning("field", name, AKIN)))
        found = [meaning for _, meaning in sorted(near, key=lambda pair: pair[0])]
        found += self._stems.get(word_stem(word), ()) if not one.meanings else ()
        if not near and not self.prose and not one.meanings:  # which has many words alike
            found = [*self.phrases.corrected(word)]
        return replace(one, meanings=tuple(dict.fromkeys((*one.meanings, *found))))

    @cached_property
    def _stems(self) -> dict[str, list[Meaning]]:
        """Return the values of one word of the fields with few, by stem: "repaired" is "repair"."""
        found: dict[str, list[Meaning]] = {}
        for info in self.spec.fields:
            known = info.values <= len(info.examples) and self.canonical[info.name] != "title"
            for value in info.examples if known and not self.numeric(info.name) else ():
                if value.isalpha() and value.isascii():
                    meaning = Meaning("value", info.name, value)
                    found.setdefault(word_stem(value.casefold()), []).append(meaning)
        return found

    def named_values(self, text: str) -> list[dict[str, str]]:
        """Return a condition for each field of which a text names a value."""
        values = {m.name: m.value for one in self.scan(text) for m in one.of("value")}
        return [{"field": name, "op": "contains", "value": values[name]} for name in values]

    def names(self, name: str) -> bool:
        """Tell whether a field names its records: a text that is another one in nearly each.

        The first column of tables in documents, which may name a thing once more, in most.
        """
        info, having = self.fields[name], [one for one in self.files if name in one.fields]
        first = all(TABLE_SIGN in one.file and one.fields[0] == name for one in having)
        return (
            info.type == "text"
            and name not in self.dates
            and self.canonical[name] not in tables()["people"]
            and info.values
            >= (DISTINCT_FIRST if first else DISTINCT) * sum(one.records for one in having)
        )

    def numbers_each(self, table: RecordTable) -> bool:
        """Tell whether the first column of a file has another number in each record."""
        info = self.fields.get(table.fields[0]) if table.fields else None
        return info is not None and info.type == "number" and info.values >= table.records

    def is_code(self, name: str) -> bool:
        """Tell whether a field's values are codes that records are called by: "SUP-1042"."""
        shown = self.fields[name].examples
        return bool(shown) and all(_CODE.fullmatch(one) for one in shown)

    def tells(self, name: str) -> bool:
        """Tell whether a field says more of a record than what it is called."""
        label = label_of(name)
        return self.canonical[name] not in NAMES and not label.endswith("id") and label != "text"

    def first(self, names: Iterable[str], among: Sequence[str] | None = None) -> str | None:
        """Return the first field that is one of these in every collection's terms."""
        fields = self.fields if among is None else among
        return next((f for name in names for f in fields if self.canonical[f] == name), None)

    def numeric(self, name: str) -> bool:
        """Tell whether a field's values are numbers."""
        return self.fields[name].type == "number"

    def orders(self, name: str) -> list[str]:
        """Return the fields that a superlative may order by."""
        wanted = tables()["order_fields"][name]
        found = [f for one in wanted for f in self.fields if self.canonical[f] == one]
        found += self.dates if "date" in wanted else ()
        return [f for f in found if self.numeric(f) or f in self.dates]

    def of_noun(self, kind: str) -> list[str]:
        """Return the files whose records a noun names, by their own name or by their fields."""
        group = {word for text in tables()["tables"][kind] for word in (text, f"{text}s")}
        made = {g for g, has in tables()["made_of"].items() if g in group for g in has}
        return [
            one.file
            for one in self.files
            if {*re.split(r"[\W_\d]+", file_words(one.file))} & group
            or {self.canonical[name] for name in one.fields} & made
        ]

    def _named(self) -> Iterator[tuple[str, Meaning]]:
        labels = {label_of(name) for name in self.fields}
        for info in self.spec.fields:
            meaning = Meaning("field", info.name)
            known = self.canonical[info.name]
            # "Price (£)" is called the price, too.
            bare = re.sub(r"\s*\([^()]*\)", "", label_of(info.name)).strip()
            ways = dict.fromkeys((label_of(info.name), bare, _without_unit(bare)))
            listed = [(one, meaning) for one in ways if one]
            listed += [(str(text), meaning) for text in tables()["fields"].get(known, ())]
            if not known:  # "song" of an order, which is no field of every collection
                kinds = [g for kind, g in tables()["tables"].items() if kind not in GENERAL_KINDS]
                groups = [one for one in kinds if label_of(info.name) in one]
                listed += [(t, meaning) for one in groups for t in one if t not in labels]
            if info.name in self.dates:
                hint = Meaning("hint", info.name)
                listed += [(str(text), hint) for text in tables()["when"].get(known, ())]
            examples = {value.casefold() for value in info.examples}
            if examples and examples <= {*tables()["flags"]}:
                listed += [(text, Meaning("flag", info.name)) for text, _ in listed]
            elif info.values <= len(info.examples) and known != "title":
                listed += self._values(info, examples)
            yield from listed
            yield from plurals(listed)
        for one in self.spec.tables:
            if TABLE_SIGN in one.file:
                yield from self._in_document(one)
                continue
            named = Meaning("table", one.file)
            for label in self._naming(one):
                yield from ((text, named) for text in (label, f"{label}s"))
            stem = file_words(one.file)
            for text in (stem, *stem.split()):
                if len(text) > 1:
                    yield text, named
                    yield re.sub(r"(?<=\w{3})s$", "", text), named
                    yield from ((one, named) for one in spelled_in_cyrillic(text))

    def _naming(self, table: RecordTable) -> list[str]:
        """Return what the column is called that names the records of a file, and so they."""
        first = next((name for name in table.fields if name in self.fields), "")
        label = label_of(first).casefold()
        return [label] if first and not self.canonical[first] and self.names(first) else []

    @staticmethod
    def _in_document(table: RecordTable) -> Iterator[tuple[str, Meaning]]:
        """Yield what a table in a document is called: by its heading, and by what its rows are of.

        That is what its first column is called, unless all collections have another use for it, or
        the plural that its heading begins with: "Loans in May".
        """
        heading = re.sub(r" \d+$", "", table.file.rsplit(TABLE_SIGN, 1)[-1]).casefold()
        words = heading.split()
        if len(words) <= MOST_WORDS:
            yield heading, Meaning("table", table.file)
        begin = [*takewhile(lambda word: not is_common(word), words)]
        for word in begin[-1:]:
            if CYRILLIC.search(word) or (len(word) > LEAST_NOUN and word.endswith("s")):
                yield from ((one, Meaning("table", table.file)) for one in (word, word[:-1]))
        label = label_of(table.fields[0]).casefold()
        found = general_phrases().scan(label)
        if all(m.kind == "noun" for one in found for m in one.meanings):
            for text, _ in [(label, None), *plurals([(label, Meaning("noun"))])]:
                yield text, Meaning("table", table.file)

    def _values(self, info: FieldInfo, examples: set[str]) -> Iterator[tuple[str, Meaning]]:
        for value in info.examples:
            low = value.casefold()
            if not 0 < len(low.split()) <= MOST_WORDS or low.replace(".", "").isdigit():
                continue
            meaning = Meaning("value", info.name, value)
            if not is_common(low):
                yield from [(low, meaning), (low.replace("_", " "), meaning)]
            for group in tables()["values"].values():
                if low in group:  # what is a value of its own stands for nothing else
                    yield from ((t, meaning) for t in group if t == low or t not in examples)


_schemas: dict[tuple[object, ...], RecordSchema] = {}


def schema_of(spec: ToolSpec) -> RecordSchema:
    """Return the schema of a tool; made once for what its caller sees."""
    seen = [(info.name, info.values, *info.examples) for info in spec.fields]
    key = (spec.name, spec.others, *map(tuple, seen), *((t.file, t.records) for t in spec.tables))
    if key not in _schemas:
        for old in [*islice(_schemas, max(0, len(_schemas) - 15))]:
            _schemas.pop(old, None)
        _schemas[key] = RecordSchema(spec)
    return _schemas[key]


PASSED = ("filler", "list", "most", "least", "hint", "year")
NEAR = 3  # phrases between a number and the field it is of; chosen, not measured


@dataclass
class RecordReading:
    """Hold what has been read of a question so far; `used` are the places already explained."""

    matches: list[PhraseMatch]
    schema: RecordSchema
    where: list[dict[str, Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the phrases that the conditions are of
    used: set[int] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)
    order: tuple[str, bool] | None = None
    limit: int | None = None
    groups: str | None = None
    characters: int = 0
    aggregate: str = "list"
    adds: str | None = None
    named: bool = False
    sure: bool = True
    verified: bool = False  # it asks whether a record that is named has a value
    passed_over: int = 0

    def add(self, place: int, name: str, op: str, value: object) -> None:
        """Add the condition that the phrase at a place says."""
        self.where.append({"field": name, "op": op, "value": value})
        self.places.append(place)

    def shared(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the conditions that a share is of, and those of what it is a share of.

        The last one is what is asked, with those that "and" joins to it.
        """
        first = max(self.places, default=0)
        for place in sorted(set(self.places), reverse=True)[1:]:
            if not any(one.is_a("until") for one in self.matches[place + 1 : first]):
                break
            first = place
        pairs = [*zip(self.places, self.where, strict=True)]
        return [one for p, one in pairs if p >= first], [one for p, one in pairs if p < first]


def nearest(
    reading: RecordReading, place: int, kinds: Sequence[str], *, back: bool = False
) -> int | None:
    """Return the nearest place of a kind; only marks that carry nothing stand between."""
    way = range(place - 1, -1, -1) if back else range(place + 1, len(reading.matches))
    for other in way[:NEAR]:
        one = reading.matches[other]
        if one.is_a(*kinds):
            return other
        if not one.is_a(*PASSED) and not is_common(one.text):
            return None
    return None


def is_negated(reading: RecordReading, place: int) -> bool:
    """Tell whether a phrase is denied, which explains the word that denies it."""
    near = nearest(reading, place, ("not",), back=True)
    if near is None or near in reading.used:
        return False
    reading.used.add(near)
    return True


def has(reading: RecordReading, *kinds: str) -> bool:
    """Tell whether any phrase is of one of these kinds."""
    return any(one.is_a(*kinds) for one in reading.matches)
