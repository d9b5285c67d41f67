"""A GGUF model in this process, through llama-cpp-python."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import (
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    convert_to_openai_messages,
)
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from core.budget import current_ledger
from core.distribution import require_extra
from core.errors import ModelError
from core.settings import Settings
from models.chat.running import POLL_SECONDS, running_call
from models.chat.types import Capabilities, ModelOverflow, Thinking
from models.llama.gguf_file import GgufInfo, read_gguf
from models.llama.plan import (
    MIB,
    OUTPUT_LAYER,
    check_memory,
    choose_layers_in_process,
    find_model,
    slot_context,
)

CPU_BATCH = 128  # tokens of a prompt read at once: a call can be ended between two batches
GPU_BATCH = 512  # llama.cpp's own micro batch
ONE_SLOT = 1  # a loaded model answers one request at a time


def _load(info: GgufInfo, context: int, layers: int, threads: int) -> Any:  # noqa: ANN401
    from llama_cpp import Llama

    try:
        return Llama(
            str(info.path),
            n_ctx=context,
            n_batch=GPU_BATCH if layers else CPU_BATCH,
            n_gpu_layers=layers,
            n_threads=threads,
            n_threads_batch=threads,
            flash_attn=layers > 0,
            verbose=False,
        )
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelError(
            f"llama.cpp cannot load the model ({error})",
            value=str(info.path),
            hint="compare the file with `carrel models verify`, or update llama-cpp-python",
        ) from None


def _look_between_batches(llm: Any) -> None:  # noqa: ANN401
    """Let a call that has to end raise between two batches of its prompt."""
    read, batch = llm.eval, llm.n_batch

    def read_in_steps(tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), batch):
            check_call()
            read(tokens[start : start + batch])

    llm.eval = read_in_steps


def _formatter(llm: Any) -> Any:  # noqa: ANN401
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    def text(token: int) -> str:
        return str(llm.detokenize([token], special=True), "utf-8", "replace")

    return Jinja2ChatFormatter(
        template=llm.metadata["tokenizer.chat_template"],
        eos_token=text(llm.token_eos()) if llm.token_eos() >= 0 else "",
        bos_token=text(llm.token_bos()) if llm.token_bos() >= 0 else "",
    )


HEAD_BYTES = 16_000_000  # header and the first tensors


class LlamaCppChat(BaseChatModel):
    """Stream replies of a loaded model, one request at a time.

    `max_tokens`, `response_format` (json_object with a schema) and `chat_template_kwargs` are
    understood as a server would. What a prompt has in common with the one before it is not read
    again, except for another owner (core/budget.py): the time would tell what was asked before.
    """

    name: str | None = None
    temperature: float
    seed: int
    _llm: Any = PrivateAttr()
    _formatter: Any = PrivateAttr()
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _owner: str = PrivateAttr("")

    def __init__(self, llm: Any, formatter: Any, **values: Any) -> None:  # noqa: ANN401
        super().__init__(**values)
        self._llm = llm
        self._formatter = formatter

    @property
    def _llm_type(self) -> str:
        return "llama-cpp"

    def render(self, messages: Sequence[BaseMessage], **variables: object) -> str:
        """Return the prompt that the model's own chat template makes."""
        converted = convert_to_openai_messages(list(messages))
        return str(self._formatter(messages=converted, **variables).prompt)

    def get_num_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokens(text, special=False))

    def close(self) -> None:
        """Free the model's memory."""
        with self._lock:
            self._llm.close()

    def _tokens(self, text: str, *, special: bool) -> list[int]:
        encoded = text.encode("utf-8", "replace")
        return list(self._llm.tokenize(encoded, add_bos=False, special=special))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Iterator[ChatGenerationChunk]:
        prompt = self.render(messages, **kwargs.get("chat_template_kwargs", {}))
        tokens = self._tokens(prompt, special=True)
        if len(tokens) >= self._llm.n_ctx():
            rule = f"the prompt does not fit the model's context of {self._llm.n_ctx()} tokens"
            raise ModelOverflow(rule, value=f"{len(tokens)} tokens", hint="send less text")
        with self._turn():
            cached = self._count_reused(tokens)
            finish = "stop"
            for piece in self._llm.create_completion(
                tokens,
                stream=True,
                stop=stop or [],
                max_tokens=kwargs.get("max_tokens"),
                temperature=kwargs.get("temperature", self.temperature),
                seed=kwargs.get("seed", self.seed),
                grammar=_grammar(kwargs.get("response_format")),
            ):
                choice = piece["choices"][0]
                finish = choice["finish_reason"] or finish
                if text := choice["text"]:
                    chunk = ChatGenerationChunk(message=AIMessageChunk(content=text))
                    if run_manager:
                        run_manager.on_llm_new_token(text, chunk=chunk)
                    yield chunk
            # the last token, mostly the one that ends the reply, has not been read any more
            written = max(0, self._llm.n_tokens - len(tokens) + 1)
            yield _last(finish, len(tokens), cached, written)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other request runs, no longer than the call may take."""
        while not self._lock.acquire(timeout=POLL_SECONDS):
            check_call()
        try:
            yield
        finally:
            self._lock.release()

    def _count_reused(self, tokens: list[int]) -> int:
        """Return how many tokens need not be read again; none of another owner's."""
        owner = current_ledger().owner
        if owner != self._owner:
            self._llm.reset()
        self._owner = owner
        same = 0
        for known, token in zip(self._llm.eval_tokens, tokens, strict=False):
            if known != token:
                break
            same += 1
        return same


def open_gguf_chat(settings: Settings) -> tuple[LlamaCppChat, Capabilities]:
    """Load the model of `settings.llm.file`, a path or the name of a model, and say what it can.

    Raises ModelError when the library is missing or the file is no chat model, OperatorError when
    memory does not suffice.
    """
    require_extra(
        "llama",
        "running a GGUF file",
        value=settings.llm.file,
        otherwise="use a server: CARREL_LLM_URL",
        error=ModelError,
    )
    path, card = find_model(settings.llm.file, settings.llama.model_folder)
    info = read_gguf(path)
    if not info.has_chat_template:
        hint = "take an instruct model, such as those of `carrel models list`"
        raise ModelError("the GGUF file has no chat template", value=str(path), hint=hint)
    context = slot_context(settings, info, card)
    layers = choose_layers_in_process(info, asked=settings.llama.gpu_layers)
    check_memory(
        info,
        context,
        ONE_SLOT,
        share=1 - layers / (info.layers + OUTPUT_LAYER),
        margin=settings.llama.memory_margin * MIB,
    )
    llm = _load(info, context, layers, settings.llama.threads or os.cpu_count() or 1)
    _look_between_batches(llm)
    chat = LlamaCppChat(
        llm,
        _formatter(llm),
        name=path.stem,
        temperature=settings.llm.temperature,
        seed=settings.llm.seed,
    )
    thinking = _thinking(chat)
    return chat, Capabilities(
        kind="in-process",
        model=path.stem,
        served=[path.stem],
        structured="json_object",
        context=context,
        thinking=thinking,
        switches=thinking == "switch",
        tokenizes=True,
        digest=file_digest(path),
    )


def file_digest(path: Path) -> str:
    """Return what tells a model's file from another: its name, its length and its first part."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    identity = f"{path.name} {path.stat().st_size} ".encode() + head
    return hashlib.sha256(identity).hexdigest()[:24]


def _thinking(chat: LlamaCppChat) -> Thinking:
    """Return how the chat template treats thinking: a switch, or a prompt that already opens it."""
    question = [HumanMessage("?")]
    on, off = (chat.render(question, enable_thinking=value) for value in (True, False))
    if on != off:
        return "switch"
    return "always" if on.rstrip().endswith("<think>") else "none"


def check_call() -> None:
    """Raise when the call that this thread makes has to end."""
    call = running_call()
    if call is not None:
        call.check()


def _last(finish: str, prompt: int, cached: int, written: int) -> ChatGenerationChunk:
    usage = UsageMetadata(
        input_tokens=prompt,
        output_tokens=written,
        total_tokens=prompt + written,
        input_token_details=InputTokenDetails(cache_read=cached),
    )
    message = AIMessageChunk(
        content="", usage_metadata=usage, response_metadata={"finish_reason": finish}
    )
    return ChatGenerationChunk(message=message)


def _grammar(response_format: dict[str, Any] | None) -> Any:  # noqa: ANN401
    if not response_format:
        return None
    from llama_cpp.llama_grammar import LlamaGrammar

    return LlamaGrammar.from_json_schema(json.dumps(response_format["schema"]), verbose=False)
