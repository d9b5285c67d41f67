"""Every number and choice in one place, validated, with where each value came from.

Precedence: flag > environment (`CARREL_…`) > profile > default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from core.budget import Budget
from core.errors import CallerError

PREFIX = "CARREL_"
LISTS = frozenset({"embedder_languages", "studio_roles"})  # given with commas between
Origin = Literal["flag", "environment", "profile", "default"]


def _data_dir() -> Path:
    return Path(platformdirs.user_data_dir("carrel"))


def _cache_dir() -> Path:
    return Path(platformdirs.user_cache_dir("carrel"))


class Settings(BaseSettings):
    """Hold all settings; each field's description is its documentation."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True
    )

    # Places
    data: Path = Field(default_factory=_data_dir, description="Data directory.")
    cache: Path = Field(default_factory=_cache_dir, description="Cache for exported models.")
    lock_wait_s: float = Field(
        1.5, ge=0, le=60, description="How long to wait for a data directory another process owns."
    )
    min_free_mb: int = Field(
        100, ge=0, description="Ingest refuses to start with less free disk than this."
    )

    # Models
    embedder: str = Field(
        "embedded",
        min_length=1,
        description="'embedded' (all-MiniLM-L6-v2, English), a model folder or a cached hub name.",
    )
    embedder_languages: list[str] | None = Field(
        None, description="Languages another embedder serves (ISO 639-1); unset means any."
    )
    embedder_threads: int = Field(2, ge=1, le=64, description="Threads of the embedded model.")
    embedder_batch: int = Field(16, ge=1, le=1024, description="Texts per embedding batch.")
    embedder_cache: int = Field(
        4096, ge=1, description="Vectors of questions and sentences that are remembered."
    )

    # Ingest
    chunk_size: int = Field(1000, ge=100, le=32000, description="Characters per chunk at most.")
    chunk_overlap: int = Field(100, ge=0, description="Characters repeated between chunks.")
    min_text_words: int = Field(
        0, ge=0, description="Leave out full texts with fewer words (library profile: 200)."
    )
    max_file_mb: int = Field(64, ge=1, description="Largest file that is read, in MB.")
    max_pages: int = Field(5000, ge=1, description="Pages read of one document at most.")
    max_characters: int = Field(
        20_000_000, ge=1000, description="Characters read of one file at most."
    )
    parse_timeout_s: float = Field(60, gt=0, description="Time to parse one PDF or DOCX.")
    parse_memory_mb: int = Field(2048, ge=128, description="Memory to parse one PDF or DOCX.")
    ingest_batch: int = Field(256, ge=1, le=5000, description="Chunks per write to the catalogue.")
    vector_batch: int = Field(500, ge=1, le=500, description="Vectors per write to Chroma.")

    # Retrieval
    top_k: int = Field(10, ge=1, le=100, description="Results of a search.")
    vector_k: int = Field(5, ge=1, description="Vector candidates of a tool call.")
    vector_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    text_k: int = Field(5, ge=1, description="BM25 candidates of a tool call.")
    text_k_extended: int = Field(10, ge=1, description="The same after a rewrite.")
    records_k: int = Field(5, ge=1, description="Rows of a record query.")
    records_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    weight_vector: float = Field(0.6, ge=0, le=1, description="Weight of the vector channel.")
    weight_text: float = Field(0.4, ge=0, le=1, description="Weight of the BM25 channel.")
    text_cutoff: float = Field(
        0.3, ge=0, le=1, description="BM25 hits below this share of the best hit are dropped."
    )
    bm25_title: float = Field(3.0, gt=0, description="BM25 weight of the title.")
    bm25_keywords: float = Field(2.0, gt=0, description="BM25 weight of the keywords.")
    bm25_section: float = Field(2.0, gt=0, description="BM25 weight of the heading path.")
    vector_exact_limit: int = Field(
        20_000, ge=0, description="Collections up to this many chunks are scanned exactly."
    )
    sql_timeout_s: float = Field(1.0, gt=0, description="Time a record query may take.")

    # Deciding
    grade_answers: float = Field(
        0.75, ge=0, le=1, description="Evidence at or above this score answers (grade 3)."
    )
    grade_partly: float = Field(
        0.5, ge=0, le=1, description="Evidence at or above this score partly answers (grade 2)."
    )
    grade_related: float = Field(
        0.3, ge=0, le=1, description="Evidence at or above this score is related (grade 1)."
    )
    max_rewrites: int = Field(2, ge=0, le=3, description="Rewrites of one sub-question at most.")
    drift_similarity: float = Field(
        0.6, ge=0, le=1, description="A rewrite less similar to its question is thrown away."
    )
    max_sub_questions: int = Field(5, ge=1, le=10, description="Sub-questions of one question.")
    claims_per_question: int = Field(2, ge=1, le=10, description="Sentences per sub-answer.")
    list_items: int = Field(5, ge=1, le=20, description="Items of a recommended list.")
    max_question_chars: int = Field(4000, ge=10, description="Longest question accepted.")
    history_turns: int = Field(6, ge=0, le=50, description="Earlier turns a question may use.")

    # Budget of one run
    budget_steps: int = Field(64, ge=1, description="Graph steps of one run.")
    budget_tool_calls: int = Field(24, ge=0, description="Tool calls of one run.")
    budget_tokens: int = Field(60_000, ge=0, description="Tokens read and written in one run.")
    budget_seconds: float = Field(120, gt=0, description="Wall-clock time of one run.")
    budget_cost: float = Field(1.0, ge=0, description="Cost of one run, in the provider's unit.")
    budget_answer_share: float = Field(
        0.15, ge=0, lt=1, description="Share of the budget kept for the answer."
    )

    # LangGraph Studio: its one local user, whom no caller can change
    studio_collection: str = Field("default", description="Collection that Studio asks.")
    studio_tenant: str = Field("default", description="Tenant of Studio's user.")
    studio_user: str = Field("local", description="Name of Studio's user.")
    studio_roles: list[str] = Field(
        default_factory=list, description="Roles of Studio's user, separated by commas."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(
                f"chunk_overlap ({self.chunk_overlap}) must be below chunk_size ({self.chunk_size})"
            )
        if not self.grade_related <= self.grade_partly <= self.grade_answers:
            raise ValueError("grade_related <= grade_partly <= grade_answers must hold")
        if self.weight_vector + self.weight_text == 0:
            raise ValueError("weight_vector and weight_text cannot both be 0")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment through `load_settings` alone, which knows the profile's place."""
        return (init_settings,)

    def budget(self) -> Budget:
        """Return the budget of one run."""
        return Budget(
            steps=self.budget_steps,
            tool_calls=self.budget_tool_calls,
            tokens=self.budget_tokens,
            seconds=self.budget_seconds,
            cost=self.budget_cost,
            answer_share=self.budget_answer_share,
        )


def environment_values() -> dict[str, str]:
    """Return the settings that the environment gives, by setting name."""
    names = {name.lower() for name in Settings.model_fields}
    found = {}
    for key, value in os.environ.items():
        name = key.removeprefix(PREFIX).lower()
        if key.startswith(PREFIX) and name in names:
            found[name] = value
    return found


def load_settings(
    flags: dict[str, Any] | None = None, profile: dict[str, Any] | None = None
) -> tuple[Settings, dict[str, Origin]]:
    """Merge the sources and say where each value came from."""
    flags = {name: value for name, value in (flags or {}).items() if value is not None}
    environment: dict[str, Any] = dict(environment_values())
    for name in LISTS & environment.keys():
        parts = [part.strip() for part in environment[name].split(",")]
        environment[name] = [part for part in parts if part]
    merged = {**(profile or {}), **environment, **flags}
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        raise _setting_error(error, flags, environment, profile or {}) from None
    origins: dict[str, Origin] = {}
    for name in Settings.model_fields:
        if name in flags:
            origins[name] = "flag"
        elif name in environment:
            origins[name] = "environment"
        elif profile and name in profile:
            origins[name] = "profile"
        else:
            origins[name] = "default"
    return settings, origins


def _setting_error(
    error: ValidationError,
    flags: dict[str, Any],
    environment: dict[str, Any],
    profile: dict[str, Any],
) -> CallerError:
    first = error.errors()[0]
    advice = "`carrel config` lists every setting and its range"
    if not first["loc"]:  # a rule that several settings break together
        return CallerError(first["msg"].removeprefix("Value error, "), hint=advice)
    name = str(first["loc"][0])
    where = "flag" if name in flags else PREFIX + name.upper() if name in environment else "profile"
    value = {**profile, **environment, **flags}.get(name)
    return CallerError(
        f"setting '{name}' ({where}): {first['msg']}",
        value=value,
        hint=advice,
    )
