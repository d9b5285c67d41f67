"""Settings of the chat model, and of a llama-server beside Carrel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, SecretStr, field_validator

from core.fields.group import IGNORED, LIVE, REFUSED, ChangeRule, Group

AUTO = "auto"
DECISIONS = ("understand", "plan", "grade", "rewrite", "extract", "answer")
NULL = "null"  # that nothing answers though the rules are sure: a part of "answer", by its exam


class LlmSettings(Group):
    """Choose the chat model that thinks, and limit every call to it."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    url: str = Field(
        "http://localhost:8020/v1",
        pattern=r"^https?://",
        description="OpenAI-compatible server: llama-server, llama_cpp.server, vLLM.",
    )
    model: str = Field("", description="Model to ask for; empty: the first one served.")
    key: SecretStr | None = Field(None, description="API key of the server.")
    file: str = Field("", description="GGUF file run in this process instead of a server.")
    provider: str = Field(
        "",
        pattern=r"^([a-z_0-9]+:\S+)?$",
        description="provider:name of any chat model of LangChain, such as ollama:qwen3:4b, instead"
        " of a server; needs the extra `providers` and the provider's package.",
    )
    decisions: list[str] = Field(
        [AUTO],
        description="What a model decides: auto (what its exam has shown it to do better than the"
        " rules; before an exam the answer alone), or any of understand, plan, grade, rewrite,"
        " extract and answer, with commas between.",
    )
    temperature: float = Field(0.1, ge=0, le=2, description="Temperature of every call.")
    seed: int = Field(7, ge=0, le=2**31 - 1, description="Seed of every call.")
    thinking: bool = Field(
        False, description="Let the model think before it answers; never before decisions."
    )
    decision_tokens: int = Field(
        512, ge=16, le=32768, description="Tokens that one decision may write."
    )
    answer_tokens: int = Field(300, ge=16, le=32768, description="Tokens that an answer may write.")
    evidence_tokens: int = Field(
        400, ge=100, le=100_000, description="Tokens of evidence shown for one sub-question."
    )
    grade_partly: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Likelihood from which a model is shown a passage; below"
        " answering.grade_partly the rules would not answer from it.",
    )
    answer_by_seconds: float = Field(
        30, gt=0, description="Time after which the rules' answer is given if no model's is there."
    )
    exam: bool = Field(
        True, description="Examine a model in the background when `carrel llm serve` starts it."
    )
    exam_seconds: float = Field(
        300, gt=0, description="Time after which an exam stops; it goes on when asked for again."
    )
    thinking_tokens: int = Field(
        2048, ge=0, le=131072, description="Tokens more for thinking, when it is on."
    )
    context: int = Field(
        0, ge=0, description="Context size in tokens; 0: as the server or the model file says."
    )
    history_tokens: int = Field(
        800, ge=0, description="Tokens of earlier turns that a question is understood with."
    )
    repairs: int = Field(
        2, ge=0, le=2, description="Times an invalid reply is shown its error and asked again."
    )
    prompts: str = Field(
        "", description="Folder of prompt files used instead of the built-in ones of the same name."
    )
    retries: int = Field(
        1, ge=0, le=2, description="Times a call that found no connection is tried again."
    )
    probe_seconds: float = Field(
        2, gt=0, le=5, description="How long to look for a server before the rules take over."
    )
    check_seconds: float = Field(
        30, gt=0, description="How long a new server is tried out: schemas, thinking."
    )
    connect_seconds: float = Field(2, gt=0, description="Longest wait for a connection.")
    first_token_seconds: float = Field(30, gt=0, description="Longest wait for a first token.")
    gap_seconds: float = Field(15, gt=0, description="Longest wait between two tokens.")
    call_seconds: float = Field(120, gt=0, description="Longest time of one call.")
    queue: int = Field(
        64, ge=0, description="Calls of this process that may wait while all slots are taken."
    )
    repeats: int = Field(
        6, ge=2, description="A reply that ends in this many copies of the same text is cut."
    )
    price_prompt: Annotated[float, LIVE] = Field(
        0, ge=0, description="Cost of a million tokens read, in the unit of budget.cost."
    )
    price_completion: Annotated[float, LIVE] = Field(
        0, ge=0, description="Cost of a million tokens written, in the unit of budget.cost."
    )

    @field_validator("decisions")
    @classmethod
    def _are_decisions(cls, names: list[str]) -> list[str]:
        known = {AUTO, *DECISIONS}
        if not names or not set(names) <= known or (AUTO in names and len(names) > 1):
            raise ValueError(f"give auto, or some of {', '.join(DECISIONS)}")
        return names

    @field_validator("url")
    @classmethod
    def _names_a_server(cls, url: str) -> str:
        parts = urlsplit(url)  # raises ValueError itself
        if not parts.hostname or parts.port == 0:
            raise ValueError("a URL needs a host, like http://localhost:8020/v1")
        if "@" in parts.netloc:  # URLs are shown and kept
            raise ValueError("a URL holds no password; set CARREL_LLM__KEY to the server's key")
        return url

    @field_validator("key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value().strip() if key else ""
        if not all("!" <= character <= "~" for character in text):
            raise ValueError("a key has printable ASCII characters only, without spaces")
        return SecretStr(text) if text else None


class LlamaSettings(Group):
    """Run llama-server beside Carrel (`carrel llm serve`)."""

    server: Annotated[str, IGNORED] = Field(
        "", description="Path of llama-server; empty: from PATH, else llama_cpp.server."
    )
    home: Path = Field(
        default_factory=lambda: platformdirs.user_state_path("carrel") / "llm",
        description="Folder of the server's state, key and log.",
    )
    model_folder: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("carrel") / "models",
        description="Folder that `carrel models pull` fills.",
    )
    slots: int = Field(2, ge=1, le=64, description="Requests that the server works on at once.")
    gpu_layers: int = Field(
        -1, ge=-1, description="Layers on the GPU; -1: as many as fit, 0 without a GPU."
    )
    threads: int = Field(0, ge=0, description="CPU threads; 0: one for each core.")
    memory_margin: int = Field(
        256, ge=0, description="MiB of memory left free beside model, cache and buffers."
    )
    log_bytes: int = Field(
        5_000_000, ge=10_000, description="Size at which the server's log is rotated."
    )
    load_seconds: float = Field(
        600, gt=0, description="Longest wait until a started server has loaded its model."
    )
    restarts: int = Field(
        5, ge=0, description="Restarts within ten minutes after which the supervisor gives up."
    )
