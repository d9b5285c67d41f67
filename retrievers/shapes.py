"""What kind of text a chunk is by its shape: code, or a list of links."""

from __future__ import annotations

import re

from core.settings import Settings
from core.types import Evidence

_FENCE = re.compile(r"\s*(?:```|~~~)")
# Only what prose does not look like: "public health" begins a line of prose too.
_CODE_LINE = re.compile(
    r"\s*(?:>>> |\.\.\. |\$ \S|#include\b|pip install |curl -|@[\w.]+(?:\(.*\))?$"
    r"|(?:from [\w.]+ )?import [\w.*]+(?: as \w+)?(?:, ?\w+)*;?$|(?:async )?def \w+\("
    r"|(?:export |pub |static )*(?:function|fn|func) \w+\(|class \w+.*[:{]$"
    r"|(?:const|let|var) \w+ ?[=:]|(?:public|private|protected) .*[({]$)"
    r"|\s*[\w.\[\]\"']+\s*(?:[-+*/|&]?=(?!=)|:=)\s*\S|\s*[\w.]+\([^)]*\)\s*[;{]?\s*$"
    r"|.*[{}]\s*$|.*\);\s*$|\s*[)\]]+[,;]?\s*$"
)
_SENTENCE = re.compile(r"[.!?…](?:[\"'”’»)\]]*)(?:\s|$)|[。！？]")
_FIELD = re.compile(r"\s*[^\W_][^\n:：]{0,40}[:：]\s*\S")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]")


def code_share(item: Evidence) -> float:
    """Return the share of a chunk's lines that are code, 0..1."""
    if item.kind == "code":
        return 1.0
    lines = [line for line in item.text.splitlines() if line.strip()]
    inside, code = False, 0
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
            code += 1
        elif inside or _CODE_LINE.match(line):
            code += 1
    return code / len(lines) if lines else 0.0


def is_index_page(item: Evidence, settings: Settings) -> bool:
    """Tell whether a chunk is a list of links or a table of contents.

    That is many short lines that are neither sentences, code nor "name: value" fields.
    """
    if item.kind != "text":
        return False
    lines = [line.strip() for line in item.text.splitlines() if line.strip()]
    if len(lines) < settings.index_page_lines:
        return False
    width = settings.index_page_width
    listed = [line for line in lines if _width(line) <= width and not _FIELD.match(line)]
    bare = [line for line in listed if not _SENTENCE.search(_numbering_removed(line))]
    code = code_share(item)
    return len(bare) * (1 - code) >= settings.index_page_share * len(lines)


def _width(line: str) -> int:
    """Count characters, a Chinese one twice."""
    return len(line) + len(_WIDE.findall(line))


def _numbering_removed(line: str) -> str:
    """Drop "1.2." in front and the page number and its leading dots behind."""
    return re.sub(r"^[\d.)\s*+•-]+|[.…\s]{2,}\d*$", "", line)
