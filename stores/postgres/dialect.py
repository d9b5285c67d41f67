"""Statements of SQLite as PostgreSQL takes them; each is translated once.

What the two write differently is rewritten token by token. Functions of SQLite that PostgreSQL
lacks are functions of the schema (`stores.postgres.schema`). Those of this program cannot run
in the server: of a statement that calls one, a parameter of its own has what it found
(`Translated.derived`).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from stores.sqlite.permissions import FAMILY, KNOWN, MATCHES, MEETS, ORDER, SOUND
from stores.sqlite.record_conditions import HAS_WORDS
from stores.sqlite.schema import SCHEMA
from stores.sqlite.sums import FUNCTION

_TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")*\")|(?P<comment>--[^\n]*)"
    r"|(?P<parameter>\?\d*|:[A-Za-z_]\w*)|(?P<word>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)"
    r"|(?P<space>\s+)|(?P<sign>::|@>|&&|\|\||<>|<=|>=|!=|->>?|.)",
    re.S,
)
_TABLE = re.compile(r"CREATE TABLE (\w+) \((.*)\)(?: WITHOUT ROWID)?", re.S)
_KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
RESERVED = frozenset({"user", "both"})
TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA"}
RENAMED = {"json": "to_jsonb_value", "json_array": "jsonb_build_array", "temp": "pg_temp"}
# After these no ON of a CROSS JOIN follows any more.
_ENDS = frozenset({"JOIN", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION", ";"})
NOT_CREATED = ("document_family", "version_order")  # columns of documents that SQLite computes


class Derived(NamedTuple):
    """Say how a parameter is made of others: `kind` of a function, and what it is given."""

    kind: str
    given: str  # the name of a parameter
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Translated:
    """Hold a statement for psycopg; `returns_id` says that it returns the id of a new row."""

    sql: str
    derived: dict[str, Derived]
    changes: bool = False
    returns_id: bool = False


def keys_of(statements: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
    """Return by table its columns and those of its primary key."""
    found = {}
    for statement in statements:
        if (match := _TABLE.fullmatch(statement)) is None:
            continue
        body = match[2]
        key = _KEY.search(body)
        parts = re.split(r",\s*(?![^(]*\))", re.sub(r"\s+", " ", body).strip())
        columns = [one.split()[0] for one in parts if one.split()[0].islower()]
        own = [one.split()[0] for one in parts if "PRIMARY KEY" in one and one[0].islower()]
        found[match[1]] = columns, key[1].split(", ") if key else own
    return found


TABLES = keys_of(SCHEMA)
# Of what is inserted without an id, the server gives one; whoever inserts asks for it.
NUMBERED = {
    table: key[0]
    for table, (_, key) in TABLES.items()
    if key in (["id"], ["number"]) and table not in ("conversations", "api_keys")
}


@lru_cache(maxsize=4096)
def translate(statement: str) -> Translated:
    """Return a statement as PostgreSQL takes it, with named parameters of psycopg."""
    tokens = [
        (str(match.lastgroup), match[0])
        for match in _TOKEN.finditer(statement)
        if match.lastgroup not in ("comment", "space")
    ]
    work = _Translation(tokens)
    sql = work.text(0, len(tokens))
    first = next((word.upper() for kind, word in tokens if kind == "word"), "")
    sql, returns = _inserted(sql, tokens) if first == "INSERT" else (sql, False)
    writes = {word.upper() for kind, word in tokens if kind == "word"}
    changes = bool(writes & {"INSERT", "UPDATE", "DELETE"}) and first != "SELECT"
    return Translated(sql, dict(work.derived), changes, returns)


def _inserted(sql: str, tokens: list[tuple[str, str]]) -> tuple[str, bool]:
    """Say what happens to an inserted row whose key is there, and ask for the id of a new one."""
    words = [word for _, word in tokens]
    policy = words[2].upper() if words[1].upper() == "OR" else ""
    table = words[words.index("INTO" if "INTO" in words else "into") + 1]
    if policy == "IGNORE":
        sql += " ON CONFLICT DO NOTHING"
    elif policy == "REPLACE":
        columns, key = TABLES[table]
        others = [f'"{one}" = EXCLUDED."{one}"' for one in columns if one not in key]
        sql += f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(others)}"
    returning = "RETURNING" in words
    if table in NUMBERED and not returning and not policy:
        return f"{sql} RETURNING {NUMBERED[table]}", True
    return sql, False


def check_authorized(statement: str, rule: Callable[..., int]) -> None:
    """Raise sqlite3's error for a statement that names what a rule denies.

    It is asked of tables and functions; anything but one SELECT is denied, and a name in quotes,
    which this does not read.
    """
    found = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(statement)]
    tokens = [word for kind, word in found if kind in ("word", "sign")]
    own = tokens_of_with(tokens)
    asked = [rule(sqlite3.SQLITE_READ, word, "", None, None)
             for word in _tables(tokens) if word not in own]  # fmt: skip
    for before, word, after in zip(["", *tokens], tokens, tokens[1:], strict=False):
        if after == "(" and word.islower() and before.upper() != "WITH":
            asked.append(rule(sqlite3.SQLITE_FUNCTION, None, word, None, None))
    is_read = tokens[:1] and tokens[0].upper() in ("SELECT", "WITH") and "RECURSIVE" not in tokens
    quoted = any(kind == "quoted" for kind, _ in found)
    if not is_read or quoted or ";" in tokens or any(one != sqlite3.SQLITE_OK for one in asked):
        raise sqlite3.DatabaseError("not authorized")


def _tables(tokens: Sequence[str]) -> Iterator[str]:
    """Yield what stands where a table is named: behind FROM and JOIN, and commas between them."""
    listed = [False]  # for each open parenthesis: whether a comma is followed by a table
    for word, after in pairwise([*tokens, ""]):
        upper = word.upper()
        if word == "(":
            listed.append(False)
        elif word == ")" and len(listed) > 1:
            listed.pop()
        elif upper in ("FROM", "JOIN"):
            listed[-1] = True
        elif upper in ("WHERE", "GROUP", "ORDER", "LIMIT", "SELECT", "UNION", "ON"):
            listed[-1] = False
        if (upper in ("FROM", "JOIN") or (word == "," and listed[-1])) and after != "(":
            yield after


def tokens_of_with(tokens: Sequence[str]) -> set[str]:
    """Return the names that a WITH gives to what it selects."""
    return {
        tokens[n - 1] for n, word in enumerate(tokens) if word == "AS" and n and tokens[0] == "WITH"
    }


class _Translation:
    """Translate the tokens of one statement."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.derived: dict[str, Derived] = {}
        self._marks = 0
        self._names: dict[int, str] = {}
        for place, (kind, word) in enumerate(tokens):
            if kind == "parameter":
                self._names[place] = self._name(word)
        self._in_sum = False
        self._creates = bool(tokens) and tokens[0][1].upper() == "CREATE"

    def _name(self, word: str) -> str:
        if word == "?":
            self._marks += 1
            return str(self._marks)
        return word[1:]

    def text(self, start: int, end: int) -> str:
        """Return the tokens from `start` to `end` as SQL of PostgreSQL."""
        return " ".join(self._parts(start, end))

    def _parts(self, start: int, end: int) -> Iterator[str]:
        place = start
        while place < end:
            kind, word = self.tokens[place]
            found = getattr(self, f"_{kind}")(place, word)
            text, place = found if isinstance(found, tuple) else (found, place + 1)
            if text:
                yield text

    def _text(self, place: int, word: str) -> str:
        return word.replace("%", "%%")

    _quoted = _text

    def _number(self, place: int, word: str) -> str:
        return word

    def _parameter(self, place: int, word: str) -> str:
        return f"%({self._names[place]})s"

    def _sign(self, place: int, word: str) -> str | tuple[str, int]:
        if word == "(" and self._before(place) in ("FROM", "JOIN"):
            if (end := self._closing(place)) and not self._is_alias(end + 1):
                return f"({self.text(place + 1, end)}) AS nested_{place}", end + 1
        return "%%" if word == "%" else word

    def _word(self, place: int, word: str) -> str | tuple[str, int]:
        upper, after = word.upper(), self._at(place + 1)
        if after == "(" and word.islower() and self._before(place) not in ("INTO", "TABLE"):
            if (rule := getattr(self, f"_of_{_RULES.get(word, '')}", None)) is not None:
                return str(rule(word, place)), self._closing(place + 1) + 1
        if (rule := getattr(self, f"_on_{upper.lower()}", None)) is not None and word == upper:
            return rule(place)  # type: ignore[no-any-return]
        if upper in TYPES and word == upper:
            return TYPES[upper]
        if word in RENAMED and (after == "(" or word == "temp"):
            return RENAMED[word]
        return f'"{word}"' if word in RESERVED else word

    def _at(self, place: int) -> str:
        return self.tokens[place][1] if 0 <= place < len(self.tokens) else ""

    def _before(self, place: int) -> str:
        return self._at(place - 1).upper()

    def _is_alias(self, place: int) -> bool:
        kind, word = self.tokens[place] if place < len(self.tokens) else ("", "")
        return kind == "word" and (word.upper() == "AS" or word.islower())

    def _closing(self, place: int) -> int:
        """Return where the parenthesis at `place` ends."""
        depth = 0
        for at in range(place, len(self.tokens)):
            depth += {"(": 1, ")": -1}.get(self.tokens[at][1], 0)
            if not depth:
                return at
        raise ValueError(f"a parenthesis is open: {' '.join(word for _, word in self.tokens)}")

    def _arguments(self, place: int) -> list[tuple[int, int]]:
        """Return where the arguments begin and end, of a call whose parenthesis is at `place`."""
        end, depth, begun, found = self._closing(place), 0, place + 1, []
        for at in range(place + 1, end):
            word = self.tokens[at][1]
            depth += {"(": 1, ")": -1}.get(word, 0)
            if word == "," and not depth:
                found.append((begun, at))
                begun = at + 1
        return [*found, (begun, end)] if end > place + 1 else []

    def _texts(self, place: int) -> list[str]:
        return [self.text(*one) for one in self._arguments(place + 1)]

    # Words

    def _on_is(self, place: int) -> str | tuple[str, int]:
        negated = self._at(place + 1).upper() == "NOT"
        if self._at(place + 1 + negated).upper() in ("NULL", "TRUE", "FALSE", "DISTINCT"):
            return "IS"
        return f"IS {'' if negated else 'NOT '}DISTINCT FROM", place + 1 + negated

    def _on_glob(self, place: int) -> tuple[str, int]:
        kind, word = self.tokens[place + 1]
        if kind == "text":
            shown = glob_pattern(word[1:-1].replace("''", "'")).replace("'", "''")
            return f"~ '{shown.replace('%', '%%')}'", place + 2
        return f"~ {self._made('glob', self._names[place + 1])}", place + 2

    def _on_cross(self, place: int) -> str:
        depth = 0
        for at in range(place + 2, len(self.tokens)):
            word = self.tokens[at][1].upper()
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth < 0 or not depth and word in _ENDS:
                break
            if not depth and word == "ON":
                return ""
        return "CROSS"

    def _on_or(self, place: int) -> str | tuple[str, int]:
        if place == 1 and self._at(0).upper() == "INSERT":
            return "", place + 2
        return "OR"

    def _on_limit(self, place: int) -> str | tuple[str, int]:
        if self._at(place + 1) == "-":
            return "", place + 3
        if self.tokens[place + 1][0] == "parameter":
            return f"LIMIT NULLIF(%({self._names[place + 1]})s, -1)", place + 2
        return "LIMIT"

    def _on_where(self, place: int) -> str | tuple[str, int]:
        return ("WHERE TRUE", place + 2) if self._at(place + 1) == "1" else "WHERE"

    def _on_without(self, place: int) -> str | tuple[str, int]:
        return "", place + 2

    def _on_text(self, place: int) -> str:
        return 'TEXT COLLATE "C"' if self._creates else "TEXT"

    def _on_cast(self, place: int) -> tuple[str, int]:
        end = self._closing(place + 1)
        inner = self.text(place + 2, end - 2)
        if self._at(end - 1) != "BLOB":
            kind = self._at(end - 1)
            return f"CAST({inner} AS {TYPES.get(kind, kind)})", end + 1
        return inner if self._in_sum else f"convert_to(({inner})::text, 'UTF8')", end + 1

    # Functions

    def _of_sum(self, word: str, place: int) -> str:
        before, self._in_sum = self._in_sum, True
        texts = self._texts(place)
        self._in_sum = before
        return f"row_sum(ROW({', '.join(texts)})::text)"

    def _of_known(self, word: str, place: int) -> str:
        return "FALSE"

    def _of_sound(self, word: str, place: int) -> str:
        _, kept, now = self._texts(place)
        return f"({kept} IS NOT DISTINCT FROM {now})"

    def _of_stored(self, word: str, place: int) -> str:
        return f"{self._columns(place)[0].partition('.')[0]}.{word}"

    def _of_found(self, word: str, place: int) -> str:
        """Look whether a row is one of those for which a function of this program holds."""
        given, *columns = self._columns(place)
        if word == HAS_WORDS:
            given, columns = columns[0], [given]
        table = columns[0].partition(".")[0]
        name = {MEETS: f"{table}.id", HAS_WORDS: columns[0]}[word]
        own = tuple(one.partition(".")[2] for one in columns)
        return f"{name} = ANY({self._made(word, given, own)})"

    def _of_matches(self, word: str, place: int) -> str:
        column, given = self._columns(place)
        return f"{column} ~ {self._made('fnmatch', given)}"

    def _columns(self, place: int) -> list[str]:
        """Return the arguments of a call, of which each is a column or a parameter's name."""
        before, self._in_sum = self._in_sum, True
        found = []
        for start, end in self._arguments(place + 1):
            if self.tokens[start][0] == "parameter":
                found.append(self._names[start])
            else:
                found.append(self.text(start, end).replace(" ", ""))
        self._in_sum = before
        return found

    def _made(self, kind: str, given: str, columns: tuple[str, ...] = ()) -> str:
        name = f"{given}_{kind}_{'_'.join(columns)}"
        self.derived[name] = Derived(kind, given, columns)
        return f"%({name})s"

    def _of_extreme(self, word: str, place: int) -> str:
        texts = self._texts(place)
        name = {"max": "GREATEST", "min": "LEAST"}[word] if len(texts) > 1 else word
        return f"{name}({', '.join(texts)})"

    def _of_joined(self, word: str, place: int) -> str:
        text, separator = [*self._texts(place), "','"][:2]
        return f"string_agg(({text})::text, {separator})"

    def _of_choice(self, word: str, place: int) -> str:
        return "CASE WHEN {} THEN {} ELSE {} END".format(*self._texts(place))

    def _of_part(self, word: str, place: int) -> str:
        text, *places = self._texts(place)
        if len(places) == 1:
            return f"substr_from({text}, {places[0]})"
        return f"substr({text}, ({places[0]})::int, ({places[1]})::int)"

    def _of_group(self, word: str, place: int) -> str:
        return f"coalesce(jsonb_agg({self._texts(place)[0]}), '[]')::text"


# By the name of a function, the rule that translates its calls.
_RULES = {
    FUNCTION: "sum",
    KNOWN: "known",
    SOUND: "sound",
    FAMILY: "stored",
    ORDER: "stored",
    MEETS: "found",
    HAS_WORDS: "found",
    MATCHES: "matches",
    "max": "extreme",
    "min": "extreme",
    "group_concat": "joined",
    "iif": "choice",
    "substr": "part",
    "json_group_array": "group",
}


def glob_pattern(pattern: str, negation: str = "^") -> str:
    """Return a shell pattern as a regular expression of PostgreSQL; a set is negated by `negation`.

    SQLite negates by ^, a shell by !.
    """
    made, place = [], 0
    while place < len(pattern):
        sign = pattern[place]
        place += 1
        if sign == "*":
            made.append(".*")
        elif sign == "?":
            made.append(".")
        elif sign == "[" and (end := _set_end(pattern, place, negation)) >= 0:
            inside = pattern[place:end]
            negated = inside.startswith(negation)
            letters = re.sub(r"([\\\[\]^])", r"\\\1", inside[negated:])
            made.append(f"[{'^' if negated else ''}{letters}]")
            place = end + 1
        else:
            made.append(re.sub(r"([^\w\s])", r"\\\1", sign))
    return f"^(?:{''.join(made)})$"


def _set_end(pattern: str, place: int, negation: str) -> int:
    """Return where a set that begins at `place` ends, -1 for none; a first ] is of it."""
    first = place + (pattern[place : place + 1] == negation)
    return pattern.find("]", first + 1)
