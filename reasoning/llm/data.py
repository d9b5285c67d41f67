"""How data enters a prompt: delimited, numbered, and unable to close its own delimiters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.cues import resource
from core.types import Evidence, ToolSpec
from languages.language import known_languages

# Our own delimiters, and the control words of chat templates: servers read those as tokens
# wherever they stand in a prompt.
_OURS = "evidence|question|history|parts|tools|tool|claim|quotes|found|tried|wanted"
_TEMPLATES = "think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|s|unk|pad"
_DELIMITER = re.compile(
    rf"<(?=\s*/?\s*(?:{_OURS}|{_TEMPLATES})\b|\s*[|｜]|<SYS>|</?SYS>>)|\[(?=/?INST\])",
    re.IGNORECASE,
)
MOST_FIELDS = 200  # named to a chat model; a plan may use any
_HARMLESS = {"<": "‹", "[": "("}


def as_data(text: str) -> str:
    """Return a text in which no delimiter of a prompt or a chat template is left."""
    return _DELIMITER.sub(lambda mark: _HARMLESS[mark.group()], text.replace("\x00", ""))


def evidence_data(evidence: Sequence[Evidence], names: Sequence[str] = ()) -> str:
    """Number pieces of evidence from 1, or name them, with what a reader would see of a source."""
    return "\n".join(
        f'<evidence n="{name}"{_attributes(item)}>\n{as_data(item.text).strip()}\n</evidence>'
        for name, item in zip(names or range(1, len(evidence) + 1), evidence, strict=False)
    )


def _attributes(item: Evidence) -> str:
    shown = {"title": item.title, "section": item.section, "version": item.version}
    return "".join(f' {name}="{attribute(value)}"' for name, value in shown.items() if value)


def one_line(text: str) -> str:
    """Return a text as data on one line."""
    return " ".join(as_data(text).split())


def attribute(text: str) -> str:
    """Return a text as data on one line, without double quotes."""
    return one_line(text).replace('"', "'")


def tools_data(tools: Sequence[ToolSpec], names: Sequence[str] = ()) -> str:
    """List tools as their specs describe them, under `names` or their own."""
    blocks = []
    for name, spec in zip(names or [one.name for one in tools], tools, strict=False):
        lines = [f"{name}: {attribute(spec.purpose)}"]
        lists = {
            "not for": spec.not_for,
            "examples": spec.examples,
            "fields": _field_names(spec),
        }
        lines += [
            f"  {kind}: {'; '.join(map(attribute, listed))}"
            for kind, listed in lists.items()
            if listed
        ]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _field_names(spec: ToolSpec) -> list[str]:
    """Return the names that a prompt has room for: those with most values say most."""
    if len(spec.fields) <= MOST_FIELDS:
        return [info.name for info in spec.fields]
    most = sorted(spec.fields, key=lambda info: (-info.values, info.name))[:MOST_FIELDS]
    return [*sorted(info.name for info in most), f"and {len(spec.fields) - MOST_FIELDS} more"]


def language_name(language: str) -> str:
    """Return the English name of a language."""
    known = known_languages().get(language)
    if known is not None:
        return known.name
    name: str = resource("languages")["names"].get(language, "the language of the question")
    return name
