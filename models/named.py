"""All models that Carrel knows by name, of every kind, and where each of them lies."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from huggingface_hub import try_to_load_from_cache
from pydantic import BaseModel, ConfigDict

from core.errors import CallerError, ModelError
from models.chat_table import ChatCard, chat_table
from models.embedded import CARRIERS, embedded_folder
from models.table import ModelCard, model_table, published_weights

WEIGHTS = "model.safetensors"


class NamedModel(BaseModel):
    """Describe one model of the tables; None is what is not known.

    `file` holds its weights, `path` is where that file lies, None when it is not here.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["chat", "embedder", "cross-encoder"]
    repository: str
    file: str
    bytes: int | None
    sha256: str | None
    licence: str
    quantisation: str = ""
    context: int
    path: Path | None

    @property
    def in_hub_cache(self) -> bool:
        """Tell whether the model is a repository of many files in the Hugging Face cache."""
        return self.kind != "chat" and self.name not in CARRIERS


def named_models(folder: Path) -> list[NamedModel]:
    """Return all models; chat models lie in `folder`, the others in the Hugging Face cache."""
    cards = model_table()
    chat = [_of_chat(card, folder) for card in chat_table()]
    embedded = [
        _of_hub(next(card for card in cards if card.name == carrier.model), name)
        for name, carrier in CARRIERS.items()
    ]
    return [*chat, *embedded, *(_of_hub(card) for card in cards)]


def find_named(name: str, folder: Path) -> NamedModel:
    """Return a model by its name, or the last part of it; raise CallerError naming all."""
    models = named_models(folder)
    asked = name.strip().casefold()
    for model in models:
        if asked in (model.name.casefold(), model.name.rpartition("/")[2].casefold()):
            return model
    for model in models:
        if model.kind == "chat" and Path(asked).name == model.file.casefold():
            return model
    raise CallerError(
        "the model must be one of " + ", ".join(model.name for model in models),
        value=name,
        hint="`carrel models list` shows them",
    )


def _of_chat(card: ChatCard, folder: Path) -> NamedModel:
    path = card.path(folder)
    values = card.model_dump(exclude={"revision", "thinking"})
    return NamedModel(**values, kind="chat", path=path if path.is_file() else None)


def _of_hub(card: ModelCard, name: str = "") -> NamedModel:
    published = published_weights()
    known = published.get(name) or published.get(card.name, {})
    return NamedModel(
        name=name or card.name,
        kind=card.kind,
        repository=card.name,
        file=CARRIERS[name].files[-1] if name else WEIGHTS,
        bytes=known.get("bytes"),
        sha256=known.get("sha256"),
        licence=card.licence,
        context=card.max_tokens,
        path=_embedded_file(name) if name else _cached_file(card.name),
    )


def _cached_file(repository: str) -> Path | None:
    found = try_to_load_from_cache(repository, WEIGHTS)
    return Path(found) if isinstance(found, str) else None


def _embedded_file(name: str) -> Path | None:
    try:
        return embedded_folder(name).path / CARRIERS[name].files[-1]
    except ModelError:  # the package is not installed: it is shown as missing
        return None
