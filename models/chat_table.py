"""Named chat models: which file of which repository, its size, digest, licence and context."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

TABLE = Path(__file__).with_name("chat_table.yaml")


class ChatCard(BaseModel):
    """Describe one chat model, a single GGUF file.

    `revision` is a commit of the repository; `bytes` and `sha256` are None where they are not
    known; `context` is the tokens it was made for; `thinking` says whether the model can think
    first, and whether its chat template can switch that off.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    def path(self, folder: Path) -> Path:
        """Return where the file lies, or will lie, in the model folder."""
        return folder.expanduser() / self.file


@cache
def chat_table() -> tuple[ChatCard, ...]:
    """Return all named chat models, in the order of the file: smallest first."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return TypeAdapter(tuple[ChatCard, ...]).validate_python(rows)


def find_chat_card(name: str) -> ChatCard | None:
    """Return the card of a chat model by its name, file or path, without regard to case."""
    last = Path(name).name.casefold()
    for card in chat_table():
        if last in (card.name.casefold(), card.file.casefold()):
            return card
    return None
