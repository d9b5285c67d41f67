"""Code, errors and tracebacks in a question: what it says in words, and the names they hold."""

from __future__ import annotations

import re
from typing import NamedTuple

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
