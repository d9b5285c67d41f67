"""What a model must reply: the schemas, and the rules that a reply is checked by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from core.errors import shorten
from core.language.detect import UNDETERMINED, detect_language
from core.language.scan import HAN
from languages.language import known_languages

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# What an escape in JSON can still name: terminals obey some of it, and no file takes half a pair.
UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HAN = re.compile(f"[{HAN}]")
# Below this many letters a text's language is easily misjudged; a Han character says as much as 3.
TELLING_LETTERS, HAN_LETTERS = 30, 3
UNLIMITED = 99
# The letters of a script, and what of it is no name: small words, or characters of Chinese.
_LATIN = (re.compile("[A-Za-z]"), re.compile(r"(?<![\w-])[a-z]{2,}(?![\w-])"))
_CYRILLIC = (re.compile("[А-яёіїєґ]"), re.compile(r"(?<![\w-])[а-яёіїєґ]{2,}(?![\w-])"))
_CHINESE = (_HAN, re.compile(f"[{HAN}]{{2}}"))
SCRIPTS = {"latin": _LATIN, "cyrillic": _CYRILLIC, "han": _CHINESE}
WORDS = 3  # chosen, not measured


class Reply(BaseModel):
    """Be what a reply must hold; keys that were not asked for are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Unfit(ValueError):
    """Say why a reply is no valid decision; `repairs` limits how often to ask again for it."""

    def __init__(self, reason: str, repairs: int = UNLIMITED) -> None:
        """Keep the reason, which the model is shown."""
        super().__init__(reason)
        self.repairs = repairs


R = TypeVar("R", bound=Reply)


def parsed(text: str, kind: type[R]) -> R:
    """Read a reply as `kind`; raises Unfit."""
    return checked(loaded(text), kind)


def checked(value: object, kind: type[R]) -> R:
    """Check a value against `kind`; raises Unfit with the first error."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        shown = shorten(first["input"], 60)
        raise Unfit(f"{where or 'the reply'}: {first['msg']}, not {shown}") from None


def loaded(text: str) -> dict[str, Any]:
    """Return the JSON object that a reply consists of; prose or fences around it are cut off."""
    cleaned = clean(text)
    start, end = cleaned.find("{"), cleaned.rfind("}")
    if not cleaned.strip():
        raise Unfit("the reply is empty; reply with one JSON object")
    if start < 0:
        raise Unfit("the reply is not a JSON object")
    if end < start:
        raise Unfit("the JSON object has no end; write less")
    try:
        value = from_json(cleaned[start : end + 1])
    except ValueError as error:
        raise Unfit(f"the reply is not one JSON object: {error}") from None
    if not isinstance(value, dict):
        raise Unfit("the reply is not a JSON object")
    kept: dict[str, Any] = writable(value)
    return kept


def writable(value: Any) -> Any:  # noqa: ANN401
    """Replace what cannot be written or shown in the strings of a JSON value by blanks."""
    if isinstance(value, str):
        return UNWRITABLE.sub(" ", value)
    if isinstance(value, list):
        return [writable(item) for item in value]
    if isinstance(value, dict):
        return {writable(name): writable(item) for name, item in value.items()}
    return value


def clean(text: str) -> str:
    """Replace raw control characters, which JSON forbids and models write, by blanks."""
    return CONTROL.sub(" ", text.replace("\x00", ""))


def _other_script(text: str, language: str) -> bool:
    """Tell whether a text has words, not names, of another script and no letter of its own."""
    known = known_languages().get(language)
    own = SCRIPTS.get(known.script) if known is not None else None
    if own is None or own[0].search(text):
        return False
    return any(len(words.findall(text)) >= WORDS for _, words in set(SCRIPTS.values()) - {own})


def other_language(text: str, language: str) -> str:
    """Return the language of a text, or "another", when it clearly is not `language`, else ""."""
    letters = sum(map(str.isalpha, text)) + (HAN_LETTERS - 1) * len(_HAN.findall(text))
    if letters >= TELLING_LETTERS and language != UNDETERMINED:
        found = detect_language(text)
        if found not in (language, UNDETERMINED):
            return found
    return "another" if _other_script(text, language) else ""


Schema = dict[str, Any]


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def text(pattern: str = "") -> Schema:
    """Return the schema of a string; a bounded expression from ^ to $ stays cheap for servers.

    Limits of length are left out, since grammars unroll them.
    """
    return {"type": "string", **({"pattern": pattern} if pattern else {})}


def one_of(values: Sequence[str]) -> Schema:
    """Return the schema of one of some strings."""
    return {"type": "string", "enum": list(values)}


def number(first: int, last: int) -> Schema:
    """Return the schema of a whole number from `first` to `last`."""
    return {"type": "integer", "enum": list(range(first, last + 1))}


def items(kind: Schema, least: int = 0, most: int = 0) -> Schema:
    """Return the schema of a list; `most` 0 sets no limit, others must be small."""
    limits = {"minItems": least} if least else {}
    limits |= {"maxItems": most} if most else {}
    return {"type": "array", "items": kind, **limits}
