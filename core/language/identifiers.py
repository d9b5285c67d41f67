"""API names in text: `jax.lax.scan`, `snake_case`, `CamelCase`, `call()`, `C++`, `--flag`."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_CANDIDATE = re.compile(
    rf"--[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
    rf"|{_NAME}(?:\.[A-Za-z0-9_]+)*(?:\(\)|\[\]|\+\+(?!\w)|#(?!\w))?"
)
_AFTER_LETTER = re.compile(r"[A-Za-z0-9_.+-]")
_CAMEL_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
# Written with a capital inside, but names of firms and people rather than of code.
_SURNAME = re.compile(r"(?:Mc|Mac|De|Di|La|Le|Van|O)[A-Z][a-z]+")
# Dotted, but prose: "e.g", "U.S", "Ph.D", "a.m".
_DOTTED_ABBREVIATION = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}")


def is_camel(word: str) -> bool:
    """Tell whether an ASCII word carries a capital inside (`DataLoader`, `gRPC`, not `GPUs`)."""
    if word.isupper() or word.islower() or _PLURAL_ACRONYM.fullmatch(word):
        return False
    return _CAMEL_EDGE.search(word) is not None


def is_identifier(word: str) -> bool:
    """Tell whether one word looks like a name from code rather than a word of prose."""
    match = _CANDIDATE.fullmatch(word)
    if match is None or _SURNAME.fullmatch(word):
        return False
    if word.startswith("--") or word.endswith(("()", "[]", "+", "#")):
        return True
    if "." in word:
        return not _DOTTED_ABBREVIATION.fullmatch(word)
    if "_" in word:
        return any(character.isalnum() for character in word)
    return is_camel(word)


def find_identifiers(text: str) -> list[str]:
    """List the API names of a text as written, each once, in order of appearance."""
    found: dict[str, None] = {}
    for match in _CANDIDATE.finditer(text):
        word, start = match.group(), match.start()
        glued = start > 0 and _AFTER_LETTER.match(text[start - 1]) is not None
        if not glued and text[match.end() : match.end() + 1] != "@" and is_identifier(word):
            found[word] = None
    return list(found)


def split_identifier(word: str) -> list[tuple[str, int, int]]:
    """Cut an ASCII identifier into its words with their places: `HTTPServer` → HTTP, Server."""
    parts: list[tuple[str, int, int]] = []
    start = 0
    for gap in [*_SEPARATORS.finditer(word), None]:
        end = gap.start() if gap else len(word)
        parts.extend(_split_camel(word, start, end))
        start = gap.end() if gap else end
    return parts


def _split_camel(word: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """Cut one stretch of letters and digits where its capitals begin a new word."""
    stretch = word[start:end]
    if not stretch:
        return []
    if not is_camel(stretch):
        return [(stretch, start, end)]
    edges = [start, *(start + edge.start() for edge in _CAMEL_EDGE.finditer(stretch)), end]
    return [(word[a:b], a, b) for a, b in zip(edges, edges[1:], strict=False)]


FENCED = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)(?:^\1[ \t]*$|\Z)", re.M | re.S)
TRACE = re.compile(
    r"^[^\n]*(?:Traceback \(most recent call last\):|Exception in thread \"[^\"\n]*\")[^\S\n]*",
    re.M,
)
# A frame with the line of code below it, and one of Java or JavaScript.
FRAME = re.compile(
    r"^[ \t]*File \"[^\"\n]*\", line \d+.*\n(?:[ \t]+\S.*\n?)?|^[ \t]+at [\w$.<>/ ]+\(?.*$", re.M
)
ERROR = re.compile(
    r"(?<![\w.])(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure|Fault))"
    r"(?::[ \t]+(?P<message>[^\n]*))?(?![\w.])"
)
# What ends a traceback is what was raised, whatever it is called: "app.LinkLost: gave up".
RAISED = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?::[ \t]+(?P<message>[^\n]*))?[ \t]*$", re.M
)
LINE = re.compile(
    r"^(?:>>> |\.\.\. |[$] |from \w|import \w|def \w|class \w|@\w|[\w.]+ ?=[^=]|[\w.]+\().*$"
)
NAME = re.compile(r"[A-Za-z_]\w+(?:\.[A-Za-z_]\w*)*")
LEAST_LINES = 2  # of code without fences; chosen, not measured


class Snippet(NamedTuple):
    """Hold the words of a question without its code, the error it shows, and the names of code.

    `error` is its name, "" for none, and `message` what it says.
    """

    prose: str
    error: str
    message: str
    names: list[str]


def read_snippet(question: str) -> Snippet | None:
    """Take a question apart that holds code or an error with its message, None where it has none.

    Frames and paths of a traceback are left out.
    """
    code = [match[2] for match in FENCED.finditer(question)]
    rest = FRAME.sub("", TRACE.sub("", FENCED.sub("\n", question)))
    traced = bool(FRAME.search(question) or TRACE.search(question))
    errors = [one for one in ERROR.finditer(rest) if traced or one["message"]]
    errors = errors or ([*RAISED.finditer(rest)] if traced else [])
    error = errors[-1] if errors and "?" not in (errors[-1]["message"] or "") else None
    if error is not None:  # the last is what was raised in the end
        rest = f"{rest[: error.start()]} {rest[error.end() :]}"
    lines = rest.splitlines()
    found = [line for line in lines if LINE.match(line.strip()) and not line.rstrip().endswith("?")]
    if len(found) >= LEAST_LINES:
        code.append("\n".join(found))
        rest = "\n".join(line for line in lines if line not in found)
    if not (code or error is not None):
        return None
    names = list(dict.fromkeys(NAME.findall("\n".join(code))))
    shown = ("", "") if error is None else (error["name"], error["message"] or "")
    return Snippet(" ".join(rest.split()), *shown, names)
