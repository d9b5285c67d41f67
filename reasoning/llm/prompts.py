"""Prompts: their templates, the data in them, and what fits into a model's window.

A template is a file: a header that declares variables, then text with `{variable}` places.

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
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, cast

import yaml

from core.budget import current_ledger
from core.errors import OperatorError
from core.language.cues import resource
from core.language.scan import estimate_tokens
from core.types import Evidence, ToolSpec
from languages.language import known_languages
from models.chat.types import ChatModel, ChatRequest, Message, ModelOverflow, Role

FOLDER = Path(__file__).resolve().parent / "prompts"
NAMES = (
    "system understand decompose rewrite extract passage repair answer_system answer "
    "grade_system grade plan_system plan recall supports_system supports"
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

    def text(self, name: str, **values: str) -> str:
        """Return a prompt with its values inserted; exactly its variables must be given."""
        return self._prompts[name].filled(values)

    def dialogue(self, name: str) -> tuple[Message, ...]:
        """Return a prompt that never changes as a system message with the examples after it."""
        first, *turns = TURN.split(self.text(name))
        pairs = zip(turns[::2], turns[1::2], strict=True)
        examples = (Message(cast(Role, role), text.strip()) for role, text in pairs)
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


I = TypeVar("I")  # noqa: E741 - the items of a prompt
CUT_STEP = 64  # characters; chosen, not measured


def fits(chat: ChatModel, request: ChatRequest) -> bool:
    """Tell whether a request fits the context, and by estimate what the run may still spend."""
    return _affordable(request) and chat.room(request) >= 0


def _affordable(request: ChatRequest) -> bool:
    read = sum(estimate_tokens(message.content) for message in request.messages)
    return request.max_tokens <= current_ledger().affordable(read)


def fitted(
    chat: ChatModel, make: Callable[[Sequence[I]], ChatRequest], items: Sequence[I]
) -> tuple[ChatRequest, Sequence[I]]:
    """Return a request that fits, with the items it shows.

    The last items are dropped first; when one piece of evidence alone is too long, its end is cut.
    Raises ModelOverflow when not even the rest of the prompt fits.
    """
    request = make(items)
    if fits(chat, request):
        return request, items
    bare = make(())
    if not fits(chat, bare):
        rule = (
            "the prompt does not fit the model's context"
            if _affordable(bare)
            else "too little of the run's tokens or cost is left"
        )
        raise ModelOverflow(rule)
    count = _largest(len(items) - 1, lambda n: fits(chat, make(items[:n])))
    kept = items[:count]
    if not kept and isinstance(items[0], Evidence):
        kept = cast(Sequence[I], _cut(items[0], lambda one: fits(chat, make([cast(I, one)]))))
        if not kept:
            raise ModelOverflow("no evidence fits the model's context")
    return make(kept), kept


def _cut(item: Evidence, good: Callable[[Evidence], bool]) -> Sequence[Evidence]:
    """Return the longest beginning of a piece of evidence that is good; nothing for none."""

    def beginning(steps: int) -> Evidence:
        return item.model_copy(update={"text": item.text[: steps * CUT_STEP]})

    steps = _largest(len(item.text) // CUT_STEP, lambda n: good(beginning(n)))
    return [beginning(steps)] if steps else []


def _largest(limit: int, good: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to `limit` that is good, 0 for none; small ones are."""
    return bisect_left(range(1, limit + 1), True, key=lambda number: not good(number))


# Our own delimiters, and the control words of chat templates: servers read those as tokens
# wherever they stand in a prompt.
_OURS = "evidence|question|history|parts|tools|tool|claim|quotes|found|tried|wanted"
_TEMPLATES = "think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|s|unk|pad"
_DELIMITER = re.compile(
    rf"<(?=\s*/?\s*(?:{_OURS}|{_TEMPLATES})\b|\s*[|｜]|<SYS>|</?SYS>>)|\[(?=/?INST\])",
    re.IGNORECASE,
)
MOST_FIELDS = 200  # named to a chat model; a plan may use any; chosen, not measured
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
