"""The chat models that `carrel llm serve` knows by name, and how to run each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field

from core.errors import CallerError, ModelError
from models.chat_table import ChatCard, find_chat_card

PROFILES = Path(__file__).with_name("profiles.yaml")


class ModelProfile(BaseModel):
    """Say how one model is run; `context` is in tokens of one slot."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    context: int = Field(ge=512)
    slots: int = Field(ge=1)
    notes: str

    @property
    def card(self) -> ChatCard:
        """Return what is known of the model's file."""
        card = find_chat_card(self.name)
        if card is None:
            raise KeyError(self.name)
        return card


class OtherModel(BaseModel):
    """Say how a model without a profile is run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: int = Field(ge=512)


class ProfileFile(BaseModel):
    """Hold profiles.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: tuple[ModelProfile, ...]
    other: OtherModel


@cache
def read_profiles() -> ProfileFile:
    """Return all profiles in the order of the file."""
    return ProfileFile.model_validate(yaml.safe_load(PROFILES.read_text(encoding="utf-8")))


def find_model(asked: str, folder: Path) -> tuple[Path, ModelProfile | None]:
    """Return the file of a profile or of a path; of "", the first profile that has its file.

    Raises CallerError for an unknown name and ModelError for a file that is not there.
    """
    profiles = read_profiles().profiles
    if not asked:
        for profile in profiles:
            if profile.card.path(folder).is_file():
                return profile.card.path(folder), profile
        raise ModelError(
            "no chat model has been fetched yet",
            value=str(folder),
            hint=f"run `carrel models pull {profiles[0].name}`, or name a GGUF file",
        )
    for profile in profiles:
        if asked.casefold() == profile.name.casefold():
            return _fetched(profile.card.path(folder), profile), profile
    if not (asked.endswith(".gguf") or "/" in asked or Path(asked).exists()):
        raise CallerError(
            "the model to serve must be a GGUF file or one of "
            + ", ".join(profile.name for profile in profiles),
            value=asked,
            hint="`carrel models list` shows them",
        )
    return Path(asked).expanduser().absolute(), None


def _fetched(file: Path, profile: ModelProfile) -> Path:
    if not file.is_file():
        raise ModelError(
            f"the file of {profile.name} is not there",
            value=str(file),
            hint=f"run `carrel models pull {profile.name}`",
        )
    return file
