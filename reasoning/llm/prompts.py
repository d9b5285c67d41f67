"""Prompts as files: a header that declares variables, then text with `{variable}` places.

    ---
    variables: [question, history]
    ---
    Text with {question} and {history}.

A file whose text and header disagree is an error when it is loaded, not when it is used. A user's
folder may hold files of the same names, which are used instead. Lines "=== user" and
"=== assistant" part the messages of an example dialogue from the system prompt above them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

import yaml

from core.errors import OperatorError
from models.chat.types import Message, Role

FOLDER = Path(__file__).resolve().parent / "prompts"
NAMES = (
    "system understand decompose rewrite extract passage repair answer_system answer "
    "grade_system grade plan_system plan supports_system supports"
).split()
TURN = re.compile(r"^=== (user|assistant)$\n", re.MULTILINE)
HEADER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", re.DOTALL)
PLACE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True)
class Prompt:
    """Hold one prompt file."""

    name: str
    variables: frozenset[str]
    text: str

    def filled(self, values: Mapping[str, str]) -> str:
        """Insert the values in one pass, so that braces inside a value stay what they are."""
        return PLACE.sub(lambda place: values[place.group(1)], self.text)


class PromptTexts:
    """Hold all prompts by name."""

    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        """Take prompts that were checked when they were loaded."""
        self._prompts = prompts

    def __contains__(self, name: str) -> bool:
        return name in self._prompts

    def text(self, name: str, **values: str) -> str:
        """Return a prompt with its values inserted; exactly its variables must be given."""
        return self._prompts[name].filled(values)

    def dialogue(self, name: str) -> tuple[Message, ...]:
        """Return a prompt that never changes as a system message with the examples after it."""
        first, *turns = TURN.split(self.text(name))
        said = zip(turns[::2], turns[1::2], strict=True)
        examples = (Message(cast(Role, role), text.strip()) for role, text in said)
        return (Message("system", first.strip()), *examples)


@lru_cache(maxsize=8)
def load_prompts(folder: str = "") -> PromptTexts:
    """Load the built-in prompts, and those of `folder` over them; OperatorError when one is bad."""
    found = {name: read_prompt(FOLDER / f"{name}.md") for name in NAMES}
    if not folder:
        return PromptTexts(found)
    own = Path(folder).expanduser()
    if not own.is_dir():
        raise OperatorError(
            "llm.prompts must be a folder",
            value=str(own),
            hint="make it, or leave CARREL_LLM__PROMPTS empty for the built-in prompts",
        )
    for path in sorted(own.glob("*.md")):
        found[path.stem] = _override(read_prompt(path), found, path)
    return PromptTexts(found)


def read_prompt(path: Path) -> Prompt:
    """Read one prompt file; its header and its text must name the same variables."""

    def wrong(rule: str, value: str, hint: str) -> OperatorError:
        return OperatorError(f"the prompt file {path.name} {rule}", value=value, hint=hint)

    try:
        raw = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise wrong("cannot be read", str(path), str(error)) from None
    header = HEADER.match(raw)
    try:
        loaded = yaml.safe_load(header.group(1)) if header else None
    except yaml.YAMLError as error:
        rule = "must have a header that is YAML"
        raise wrong(rule, raw[:40], " ".join(str(error).split())) from None
    names = loaded.get("variables") if isinstance(loaded, dict) else None
    if header is None or not isinstance(names, list) or not all(type(n) is str for n in names):
        hint = "write '---', 'variables: [question]', '---' above the text"
        raise wrong("must begin with a header", raw[:40], hint)
    text = raw[header.end() :].strip()
    used, declared = set(PLACE.findall(text)), frozenset(names)
    for name in sorted(used - declared):
        hint = "add it to the header's variables, or correct its name"
        raise wrong("uses a variable it does not declare", name, hint)
    for name in sorted(declared - used):
        hint = f"write {{{name}}} where it belongs, or take it out of the header"
        raise wrong("declares a variable it does not use", name, hint)
    return Prompt(path.stem, declared, text)


def _override(own: Prompt, known: Mapping[str, Prompt], path: Path) -> Prompt:
    """Check that a user's prompt stands for one that exists and says the same variables."""
    if own.name not in known:
        raise OperatorError(
            "no prompt has this name",
            value=path.name,
            hint=f"name it one of {', '.join(sorted(known))}",
        )
    wanted = known[own.name].variables
    for name in sorted(own.variables ^ wanted):
        raise OperatorError(
            f"the prompt file {path.name} must use the variables of the built-in one",
            value=name,
            hint=f"its variables: {', '.join(sorted(wanted)) or 'none'}",
        )
    return own
