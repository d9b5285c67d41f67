"""What is known of widely used models: files, prompts, lengths, languages, licences."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from core.types import FrozenModel
from languages.language import read_yaml

Kind = Literal["embedder", "cross-encoder"]
Language = Annotated[str, Field(pattern=r"^[a-z]{2}$")]
ANY, CROSS = "any", "cross"
Cosines = dict[str, tuple[float, float]]
USUAL_COSINES: Cosines = {ANY: (0.25, 0.75)}  # MiniLM's, for models that nobody has measured
TABLE = Path(__file__).with_name("table.yaml")
WEIGHTS = Path(__file__).with_name("weights.yaml")
READER = "reader"  # its row there
MOST_NAMED = 4  # languages that a row of the table names


class ModelCard(FrozenModel):
    """Describe one model.

    `max_tokens` is the longest text it was made for; `languages` are ISO 639-1 codes, None for
    any; an embedder's prompts are put before every question or passage. `cosines` are those of
    unrelated texts and of texts that say the same, by language, ANY for all others, CROSS for
    a question and a text of two languages.
    """

    name: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    kind: Kind
    licence: str
    max_tokens: int = Field(ge=16)
    dimension: int | None = Field(None, ge=1)
    pooling: Literal["mean", "cls", "lasttoken"] | None = None
    query_prompt: str = ""
    passage_prompt: str = ""
    languages: frozenset[Language] | None = None
    cosines: Cosines = USUAL_COSINES


@cache
def model_table() -> tuple[ModelCard, ...]:
    """Return all known models, in the order of the file."""
    rows = read_yaml(TABLE)
    return TypeAdapter(tuple[ModelCard, ...]).validate_python(rows)


@cache
def published_weights() -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of the weights by repository, where they are known."""
    rows: dict[str, dict[str, Any]] = read_yaml(WEIGHTS)
    return rows


def find_card(name: str, kind: Kind) -> ModelCard | None:
    """Return the card of a model by its full name or by the last part of a name or path."""
    last = name.rstrip("/").rpartition("/")[2].casefold()
    for card in model_table():
        if card.kind == kind and card.name.rpartition("/")[2].casefold() == last:
            return card
    return None


def _languages(card: ModelCard) -> str:
    names = sorted(card.languages or ())
    return f"{len(names)} languages" if len(names) > MOST_NAMED else ", ".join(names) or "any"


def table_rows() -> list[str]:
    """Return the table as lines of Markdown."""
    lines = [
        "| model | kind | dimension | tokens | languages | prompts | licence |",
        "|---|---|---|---|---|---|---|",
    ]
    for card in model_table():
        prompts = [repr(text) for text in (card.query_prompt, card.passage_prompt) if text]
        languages = _languages(card)
        cells = [card.name, card.kind, card.dimension or "", card.max_tokens, languages]
        shown = " ".join(f"`{text}`" for text in prompts)
        lines.append("| " + " | ".join(map(str, [*cells, shown, card.licence])) + " |")
    return lines


SLOT_CONTEXT = 8192  # tokens that fit the memory of most machines; chosen, not measured
CHAT_TABLE = Path(__file__).with_name("chat_table.yaml")


class ChatCard(FrozenModel):
    """Describe one chat model, a single GGUF file.

    `revision` is a commit of the repository; `bytes` and `sha256` are None where they are not
    known; `context` is the tokens it was made for; `thinking` says whether the model can think
    first, and whether its chat template can switch that off. `rank` orders them where none is named
    to be served, the best choice first; `slot_context` is the tokens of one slot then.
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    revision: str = "main"
    file: str = Field(pattern=r"^[\w.-]+\.gguf$")
    quantisation: str
    bytes: int | None = Field(None, ge=1)
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    licence: str
    context: int = Field(ge=512)
    thinking: Literal["none", "switch"]
    rank: int = Field(ge=1)
    slot_context: int = Field(SLOT_CONTEXT, ge=512)

    def path(self, folder: Path) -> Path:
        """Return where the file lies, or will lie, in the model folder."""
        return folder.expanduser() / self.file


@cache
def chat_table() -> tuple[ChatCard, ...]:
    """Return all named chat models, in the order of the file: smallest first."""
    rows = read_yaml(CHAT_TABLE)
    return TypeAdapter(tuple[ChatCard, ...]).validate_python(rows)


def find_chat_card(name: str) -> ChatCard | None:
    """Return the card of a chat model by its name, file or path, without regard to case."""
    last = Path(name).name.casefold()
    for card in chat_table():
        if last in (card.name.casefold(), card.file.casefold()):
            return card
    return None
