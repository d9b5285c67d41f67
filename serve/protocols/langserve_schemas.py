"""What LangServe's routes take and give, and the configuration in their paths."""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model

from core.errors import CallerError
from core.types import Claim, Conflict, Evidence, FrozenModel
from graph.context import PipelineName
from serve.questions import Question, Storable, Utterance, turns_of

DEFAULT_COLLECTION = "default"


class TextPart(BaseModel):
    """Hold one piece of a message that comes in pieces."""

    type: Literal["text"]
    text: str


class LangChainMessage(BaseModel):
    """Hold one chat message, as LangChain serializes it or as {"role", "content"}.

    What neither person nor agent said (system, tool and function messages) is ignored.
    """

    type: str = ""
    role: str = ""
    content: str | list[str | TextPart]

    @property
    def text(self) -> str:
        """Return the text of all parts."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part if isinstance(part, str) else part.text for part in self.content)

    def to_utterance(self) -> Utterance | None:
        """Return what a person or the agent said, else None."""
        kind = (self.role or self.type).lower()
        if kind in ("human", "user", "humanmessagechunk"):
            return Utterance("user", self.text)
        if kind in ("ai", "assistant", "aimessagechunk"):
            return Utterance("assistant", self.text)
        return None


class AgentInput(BaseModel):
    """Hold a question; `messages` are the dialogue before it, oldest first."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="What is asked.")
    collection: str | None = Field(
        default=None, description="Collection that is asked; unset: default."
    )
    messages: list[LangChainMessage] | None = Field(
        default=None, description="The dialogue before the question."
    )


class Configurable(BaseModel):
    """Hold what a client may configure; who asks is no part of it, other keys are ignored."""

    collection: str | None = Field(
        default=None, description="Collection asked when the input names none."
    )
    pipeline: PipelineName | None = Field(default=None, description="How the question is answered.")


class AgentConfig(BaseModel):
    """Hold the part of a RunnableConfig that is used; other keys are ignored."""

    configurable: Configurable = Configurable()

    def over(self, below: AgentConfig) -> AgentConfig:
        """Return this configuration, with its unset fields taken from another."""
        own = self.configurable.model_dump(exclude_none=True)
        return AgentConfig(configurable=below.configurable.model_copy(update=own))


def question_of(given: AgentInput, config: AgentConfig) -> Question:
    """Return the question as the runner takes it."""
    utterances = [message.to_utterance() for message in given.messages or []]
    return Question(
        text=given.question,
        collection=given.collection or config.configurable.collection or DEFAULT_COLLECTION,
        history=turns_of(one for one in utterances if one is not None),
        pipeline=config.configurable.pipeline or "auto",
    )


FoundEvidence = cast(
    type[BaseModel],
    create_model(
        "FoundEvidence",
        __base__=FrozenModel,
        __doc__=Evidence.__doc__,
        **cast(
            Any,
            {
                name: (field.annotation, field)
                for name, field in Evidence.model_fields.items()
                if name != "document_key"
            },
        ),
    ),
)


class RunUsage(FrozenModel):
    """Count what the run took; `ms` is its time in milliseconds."""

    steps: int
    tool_calls: int
    tokens: int
    model_calls: int
    model_tokens: int
    degraded: int
    cost: float
    ms: float


class AgentOutput(FrozenModel):
    """Hold the answer or the refusal, as `carrel ask --json` prints it.

    `cached` is there when it is the answer to the same question a short while before.
    """

    run_id: str
    answer: str
    claims: list[Claim]
    conflicts: list[Conflict] = Field(default_factory=list)
    refused: bool
    stop_reason: str
    evidence: list[FoundEvidence]  # type: ignore[valid-type]  # made from Evidence above
    usage: RunUsage
    plan: dict[str, Any]
    missing: list[str]
    warnings: list[str]
    clarification: dict[str, Any] | None = Field(
        None, description="Always null here: only a conversation can be asked back."
    )
    cached: bool = False


Kwargs = Annotated[dict[str, Any], Field(description="Accepted and ignored.")]


class InvokeRequest(Storable):
    """Ask one question."""

    input: AgentInput
    config: AgentConfig | None = None
    kwargs: Kwargs = {}


class BatchRequest(Storable):
    """Ask several questions, with one configuration for all or one for each."""

    inputs: list[AgentInput]
    config: AgentConfig | list[AgentConfig] | None = None
    kwargs: Kwargs = {}


class FilteredRequest(InvokeRequest):
    """Ask one question and choose which runs within its run are reported."""

    include_names: list[str] | None = None
    include_types: list[str] | None = None
    include_tags: list[str] | None = None
    exclude_names: list[str] | None = None
    exclude_types: list[str] | None = None
    exclude_tags: list[str] | None = None

    def filters(self) -> dict[str, list[str] | None]:
        """Return the choices by LangChain's names."""
        return self.model_dump(
            include={
                *("include_names", "include_types", "include_tags"),
                *("exclude_names", "exclude_types", "exclude_tags"),
            }
        )


class InvokeMetadata(BaseModel):
    """Name the request; the run itself is named by the output's `run_id`."""

    run_id: UUID
    feedback_tokens: list[dict[str, Any]] = []


class InvokeResponse(BaseModel):
    """Answer one question."""

    output: AgentOutput
    metadata: InvokeMetadata


class BatchMetadata(BaseModel):
    """Name the requests of a batch, in its order."""

    responses: list[InvokeMetadata]
    run_ids: list[UUID]


class ItemError(BaseModel):
    """Say why one question of a batch has no answer, as the event `error` of a stream does."""

    status_code: int
    message: str


class FailedItem(BaseModel):
    """Stand for the answer that failed; the others of its batch are answered."""

    error: ItemError


class BatchResponse(BaseModel):
    """Answer several questions, in their order."""

    output: list[AgentOutput | FailedItem]
    metadata: BatchMetadata


class FailureDetail(BaseModel):
    """Say what went wrong: a line, or a list of the fields that are wrong."""

    detail: str | list[dict[str, Any]]


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-$"
BITS = 6  # of one character of the alphabet
NARROW, WIDE, END = 0, 1, 2  # codes: a new character of 8 bits, one of 16, the end
FIRST_CODE = 3


def config_of(config_hash: str, limit: int) -> dict[str, Any]:
    """Return the configuration; raises a CallerError unless it is an object of valid JSON."""
    try:
        config = json.loads(decompress(config_hash, limit))
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise CallerError(
            "Invalid config hash", hint="it is the config as JSON, compressed by lz-string"
        )
    return config


def decompress(text: str, limit: int) -> str:
    """Undo `LZString.compressToEncodedURIComponent`; at most `limit` characters come out.

    lz-string is LZW with codes as wide as the dictionary needs, least significant bit first.
    """
    # The 65th character of the alphabet, 64, only pads the end.
    values = [ALPHABET.index(character) for character in text.replace(" ", "+")]
    bits = (value >> place & 1 for value in values for place in reversed(range(BITS)))

    def take(count: int) -> int:
        """Return the next bits as a number; the first is the least significant one."""
        taken = list(islice(bits, count))
        if len(taken) < count:
            raise ValueError("the text ends too early")
        return sum(bit << place for place, bit in enumerate(taken))

    words: dict[int, str] = {}
    parts: list[str] = []
    size = 0
    before = ""
    next_code, width, room = FIRST_CODE, 2, 1
    while True:
        code = take(width)
        if code == END:
            return "".join(parts)
        fresh = code in (NARROW, WIDE)
        if fresh:
            words[next_code] = chr(take(8 if code == NARROW else 16))
            code, next_code = next_code, next_code + 1
            room, width = _grown(room, width)
        if code in words:
            word = words[code]
        elif code == next_code and before:
            word = before + before[0]
        else:
            raise ValueError("a code that no dictionary has")
        parts.append(word)
        size += len(word)
        if size > limit:
            raise ValueError("too long")
        if before:
            words[next_code] = before + word[0]
            next_code += 1
            room, width = _grown(room, width)
        before = word


def _grown(room: int, width: int) -> tuple[int, int]:
    """Count a new word; codes get wider by a bit when the words of a width are used up."""
    return (room - 1, width) if room > 1 else (1 << width, width + 1)
