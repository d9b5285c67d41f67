"""Load a GGUF model into this process, through llama-cpp-python."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from core.distribution import require_extra
from core.errors import ModelError
from core.settings import Settings
from models.llama.gguf_file import GgufInfo, read_gguf
from models.llama.memory import MIB, OUTPUT_LAYER, check_memory, choose_layers_in_process
from models.llama.plan import context_and_slots
from models.llama.profiles import find_model

CPU_BATCH = 128  # tokens of a prompt read at once: a call can be ended between two batches
GPU_BATCH = 512
ONE_SLOT = 1


class LoadedModel(NamedTuple):
    """Hold a model, what renders messages as it was trained, its file and its context in tokens."""

    llm: Any
    formatter: Any
    info: GgufInfo
    context: int


def load_model(settings: Settings, check: Callable[[], None]) -> LoadedModel:
    """Load the model of `settings.llm.file`, a path or the name of a profile.

    `check` is called between batches and may raise to end a call. Raises ModelError when the
    library is missing or the file is no chat model, OperatorError when memory does not suffice.
    """
    require_extra(
        "llama",
        "running a GGUF file",
        value=settings.llm.file,
        otherwise="use a server: CARREL_LLM_URL",
        error=ModelError,
    )
    path, profile = find_model(settings.llm.file, settings.llama.model_folder)
    info = read_gguf(path)
    if not info.has_chat_template:
        hint = "take an instruct model, such as those of `carrel models list`"
        raise ModelError("the GGUF file has no chat template", value=str(path), hint=hint)
    context, _ = context_and_slots(settings, info, profile)
    layers = choose_layers_in_process(info, asked=settings.llama.gpu_layers)
    check_memory(
        info,
        context,
        ONE_SLOT,
        share=1 - layers / (info.layers + OUTPUT_LAYER),
        margin=settings.llama.memory_margin * MIB,
    )
    llm = _load(info, context, layers, settings.llama.threads or os.cpu_count() or 1)
    _look_between_batches(llm, check)
    return LoadedModel(llm, _formatter(llm), info, context)


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


def _look_between_batches(llm: Any, check: Callable[[], None]) -> None:  # noqa: ANN401
    read, batch = llm.eval, llm.n_batch

    def read_in_steps(tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), batch):
            check()
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
