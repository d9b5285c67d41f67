"""Settings: say how the embedder, which `embedder` names, is run and given texts."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from core.fields.group import REFUSED, ChangeRule, Group


class EmbeddingSettings(Group):
    """Say how the embedder, which `embedder` names, is run and given texts."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    languages: list[str] | None = Field(
        None,
        description="Languages another embedder serves (ISO 639-1); unset: as the model table says,"
        " any for models it does not know.",
    )
    query_prompt: str | None = Field(
        None, description="Put before each question; unset: as the model's files or table say."
    )
    passage_prompt: str | None = Field(
        None, description="Put before each passage; unset: as the model's files or table say."
    )
    second: str = Field(
        "none",
        min_length=1,
        description="A second embedder that votes beside the first: 'none' or as 'embedder'.",
    )
    backend: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs embedders and re-ranker; auto: ONNX where it agrees with torch.",
    )
    device: Literal["cpu", "cuda", "mps"] = Field(
        "cpu",
        description="Where torch runs embedders and re-ranker that are not embedded; ONNX files run"
        " on the CPU, so that another device is torch's.",
    )
    threads: int = Field(2, ge=1, le=64, description="Threads of embedders and re-ranker.")
    cache: int = Field(
        10_000, ge=1, description="Vectors of questions and sentences that memory holds at most."
    )
