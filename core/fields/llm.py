"""Settings: choose the chat model that thinks, and limit every call to it."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator


class LlmFields(BaseModel):
    """Choose the chat model that thinks, and limit every call to it."""

    reasoner: Literal["rules", "llm", "auto"] = Field(
        "auto", description="Who decides: rules, llm, or auto: llm when its server answers."
    )
    llm_url: str = Field(
        "http://localhost:8020/v1",
        pattern=r"^https?://",
        description="OpenAI-compatible server: llama-server, llama_cpp.server, vLLM.",
    )
    llm_model: str = Field("", description="Model to ask for; empty: the first one served.")
    llm_key: SecretStr | None = Field(None, description="API key of the server.")
    llm_file: str = Field("", description="GGUF file run in this process instead of a server.")
    llm_grader: Literal["auto", "llm", "rules"] = Field(
        "auto",
        description="Who grades passages where a model decides: llm, rules, or auto: the rules for"
        " a model of less than 4 billion parameters by its name.",
    )
    llm_temperature: float = Field(0.1, ge=0, le=2, description="Temperature of every call.")
    llm_seed: int = Field(7, ge=0, le=2**31 - 1, description="Seed of every call.")
    llm_thinking: bool = Field(
        False, description="Let the model think before it answers; never before decisions."
    )
    llm_decision_tokens: int = Field(
        512, ge=16, le=32768, description="Tokens that one decision may write."
    )
    llm_answer_tokens: int = Field(
        1024, ge=16, le=32768, description="Tokens that the answer to one sub-question may write."
    )
    llm_thinking_tokens: int = Field(
        2048, ge=0, le=131072, description="Tokens more for thinking, when it is on."
    )
    llm_context: int = Field(
        0, ge=0, description="Context size in tokens; 0: as the server or the model file says."
    )
    llm_history_tokens: int = Field(
        800, ge=0, description="Tokens of earlier turns that a question is understood with."
    )
    llm_repairs: int = Field(
        2, ge=0, le=2, description="Times an invalid reply is shown its error and asked again."
    )
    llm_plan_repairs: int = Field(
        1, ge=0, le=2, description="Times an invalid plan is asked for again, within llm_repairs."
    )
    llm_prompts: str = Field(
        "", description="Folder of prompt files used instead of the built-in ones of the same name."
    )
    llm_retries: int = Field(
        1, ge=0, le=2, description="Times a call that found no connection is tried again."
    )
    llm_probe_seconds: float = Field(
        2, gt=0, le=5, description="How long to look for a server before the rules take over."
    )
    llm_check_seconds: float = Field(
        30, gt=0, description="How long a new server is tried out: schemas, thinking."
    )
    llm_connect_seconds: float = Field(2, gt=0, description="Longest wait for a connection.")
    llm_first_token_seconds: float = Field(30, gt=0, description="Longest wait for a first token.")
    llm_gap_seconds: float = Field(15, gt=0, description="Longest wait between two tokens.")
    llm_call_seconds: float = Field(120, gt=0, description="Longest time of one call.")
    llm_breaker_failures: int = Field(
        5, ge=1, description="Failed calls in a row after which the server is left alone."
    )
    llm_breaker_seconds: float = Field(
        15, gt=0, description="How long it is left alone before one call tries again."
    )
    llm_queue: int = Field(
        64, ge=0, description="Calls of this process that may wait while all slots are taken."
    )
    llm_reply_bytes: int = Field(
        8_000_000, ge=10_000, description="Bytes of one reply that are read at most."
    )
    llm_repeats: int = Field(
        6, ge=2, description="A reply that ends in this many copies of the same text is cut."
    )
    llm_price_prompt: float = Field(
        0, ge=0, description="Cost of a million tokens read, in the unit of budget_cost."
    )
    llm_price_completion: float = Field(
        0, ge=0, description="Cost of a million tokens written, in the unit of budget_cost."
    )
    stream: Literal["verified", "tokens", "off"] = Field(
        "verified",
        description="What is shown while an answer is written: verified sentences, the draft's"
        " tokens too (apart from the answer), or nothing.",
    )

    @field_validator("llm_url")
    @classmethod
    def _names_a_server(cls, url: str) -> str:
        parts = urlsplit(url)  # raises ValueError itself
        if not parts.hostname or parts.port == 0:
            raise ValueError("a URL needs a host, like http://localhost:8020/v1")
        if "@" in parts.netloc:  # URLs are shown and kept
            raise ValueError("a URL holds no password; set CARREL_LLM_KEY to the server's key")
        return url

    @field_validator("llm_key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        said = key.get_secret_value().strip() if key else ""
        if not all("!" <= character <= "~" for character in said):
            raise ValueError("a key has printable ASCII characters only, without spaces")
        return SecretStr(said) if said else None
