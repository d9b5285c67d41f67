"""Write a GGUF of a real Qwen3's shape with random weights: it says nothing, at the real speed.

The blocks of weights are random bytes in the layout of the quantisation (ggml-common.h: Q8_0, Q4_K,
Q6_K), with scales that give weights around 0.01; all layers share the same bytes on writing. The
vocabulary has the real size; its words are byte pairs learnt from the texts in examples/ and docs/,
so that text has about as many tokens as with the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPREAD = 0.01  # standard deviation of the weights
LOUDNESS = 20.0  # how much the constant dimension says in the choice of a token, in logits
TEXT, ENDING, SPARE = 0.5, 0.5 + 3 / 31, -1.0  # shares of it: a text ends before long
Tensors = dict[str, tuple[np.ndarray, Any]]


@dataclass(frozen=True)
class Shape:
    """Hold the figures of config.json; `mixed` is Q4_K_M, else all is Q8_0."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int
    mixed: bool

    @property
    def quantisation(self) -> str:
        """Return the name of the file type."""
        return "Q4_K_M" if self.mixed else "Q8_0"


# https://huggingface.co/Qwen/Qwen3-0.6B and Qwen3-4B-Instruct-2507, quantised as in chat_table.yaml
SHAPES = {
    "tiny": Shape("random-Qwen3-tiny", 2, 256, 4, 2, 64, 512, 2_048, False),
    "0.6b": Shape("random-Qwen3-0.6B", 28, 1024, 16, 8, 128, 3072, 151_936, False),
    "4b": Shape("random-Qwen3-4B", 36, 2560, 32, 8, 128, 9728, 151_936, True),
}


def write_random_model(path: Path, shape: Shape, said: Callable[[str], None]) -> Path:
    """Write the model unless it is there; `said` hears what is being done."""
    if path.exists():
        return path
    import gguf

    said(f"writing {shape.name}, {shape.quantisation}, to {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    writer = gguf.GGUFWriter(partial, "qwen3")
    words, merges = _vocabulary(shape.vocabulary)
    _describe(writer, shape, words, merges)
    for name, (tensor, kind) in _tensors(shape, words).items():
        writer.add_tensor(name, tensor, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(path)
    return path


def _vocabulary(size: int) -> tuple[list[str], list[str]]:
    """Return tokens (specials last) and merges; what the texts do not fill are spare tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split
    files = sorted([*(ROOT / "examples").rglob("*.md"), *(ROOT / "docs").rglob("*.md")])
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIALS), initial_alphabet=split.alphabet(), show_progress=False
    )
    texts = (file.read_text(encoding="utf-8") for file in files)
    tokenizer.train_from_iterator(texts, trainer)
    found = tokenizer.get_vocab()
    words = sorted(found, key=lambda word: found[word])
    import json

    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    spare = size - len(words) - len(SPECIALS)
    return [*words, *(f"<|spare_{number}|>" for number in range(spare)), *SPECIALS], merges


def _describe(writer: Any, shape: Shape, words: list[str], merges: list[str]) -> None:  # noqa: ANN401
    import gguf

    end = len(words) - 1
    writer.add_name(shape.name)
    kind = gguf.LlamaFileType
    writer.add_file_type(kind.MOSTLY_Q4_K_M if shape.mixed else kind.MOSTLY_Q8_0)
    writer.add_context_length(32768)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(words)
    normal = len(words) - len(SPECIALS)
    types = [gguf.TokenType.NORMAL] * normal + [gguf.TokenType.CONTROL] * len(SPECIALS)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(end - 2)
    writer.add_eos_token_id(end)
    writer.add_pad_token_id(end - 2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def _tensors(shape: Shape, words: list[str]) -> Tensors:
    import gguf

    kinds = gguf.GGMLQuantizationType
    small = kinds.Q4_K if shape.mixed else kinds.Q8_0
    large = kinds.Q6_K if shape.mixed else kinds.Q8_0
    draw = np.random.default_rng(0)
    f32, inner, width = kinds.F32, shape.inner, shape.width
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head

    def matrix(rows: int, columns: int, kind: Any, silent: bool = False) -> tuple[np.ndarray, Any]:  # noqa: ANN401
        blocks = random_blocks(rows, columns, kind, draw)
        if silent:  # dimension 0 of the residual stream stays as it is
            blocks[0] = 0
        return blocks, kind

    def ones(size: int) -> tuple[np.ndarray, Any]:
        return np.ones(size, np.float32), f32

    embedding = (draw.standard_normal((len(words), width), np.float32) * SPREAD).astype(np.float16)
    embedding[:, 0] = 1
    last = ones(width)
    output, kind = matrix(len(words), width, large)
    last[0][0] = LOUDNESS / vote(output, kind, words)
    tensors: Tensors = {
        "token_embd.weight": (embedding, kinds.F16),  # only looked up, so its type costs no time
        "output_norm.weight": last,
        "output.weight": (output, kind),
    }
    down = {kind: matrix(width, inner, kind, silent=True) for kind in {small, large}}
    values = {kind: matrix(keys, width, kind) for kind in {small, large}}
    shared = {
        "attn_norm": ones(width),
        "ffn_norm": ones(width),
        "attn_q": matrix(queries, width, small),
        "attn_k": matrix(keys, width, small),
        "attn_output": matrix(width, queries, small, silent=True),
        "attn_q_norm": ones(shape.head),
        "attn_k_norm": ones(shape.head),
        "ffn_gate": matrix(inner, width, small),
        "ffn_up": matrix(inner, width, small),
    }
    for layer in range(shape.layers):
        kind = large if _more_bits(layer, shape.layers) else small
        for name, tensor in {**shared, "attn_v": values[kind], "ffn_down": down[kind]}.items():
            tensors[f"blk.{layer}.{name}.weight"] = tensor
    return tensors


def _more_bits(layer: int, layers: int) -> bool:
    """Tell which layers have Q6_K for values and down in Q4_K_M (llama-quant.cpp)."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def random_blocks(rows: int, columns: int, kind: Any, draw: np.random.Generator) -> np.ndarray:  # noqa: ANN401
    """Return random weights as rows of bytes in a quantisation's layout."""
    import gguf

    kinds = gguf.GGMLQuantizationType
    items, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = draw.integers(0, 256, (rows, columns // items, size), np.uint8)
    if kind == kinds.Q8_0:  # scale, 32 signed bytes
        _put(blocks, 0, SPREAD / 74)
    elif kind == kinds.Q4_K:  # scale, scale of minima, 12 bytes of 6-bit scales, 128 of 4-bit
        _put(blocks, 0, SPREAD / (32 * 4.6))
        _put(blocks, 2, 7.5 * SPREAD / (32 * 4.6))
        blocks[..., 4:12], blocks[..., 12:16] = 0xA0, 0  # all scales and minima are 32
    else:  # Q6_K: 128 bytes of low bits, 64 of high bits, 16 signed scales, scale
        blocks[..., 192:208] = 8
        _put(blocks, 208, SPREAD / (8 * 18.5))
    return blocks.reshape(rows, -1)


def _put(blocks: np.ndarray, place: int, value: float) -> None:
    blocks[..., place : place + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)


def vote(output: np.ndarray, kind: Any, words: list[str]) -> float:  # noqa: ANN401
    """Set each token's weight of dimension 0, text above noise and endings above text.

    Without it a reply would be tokens that are no words, and never end before its limit. Returns
    the weight that share 1 has.
    """
    import gguf

    eight_bits = kind == gguf.GGMLQuantizationType.Q8_0
    for number, word in enumerate(words):
        ends = any(mark in word for mark in '"}]') or word == SPECIALS[2]
        text = word.isascii() and not word.startswith("<|")
        share = ENDING if ends else TEXT if text else SPARE
        if eight_bits:
            output[number, 2] = np.int8(127 * share).view(np.uint8)
        else:  # the first weight's six bits, and a larger scale for the first sixteen
            bits = int(32 + 31 * share)
            output[number, 0] = output[number, 0] & 0xF0 | bits & 15
            output[number, 128] = output[number, 128] & 0xFC | bits >> 4
            output[number, 192] = 127
    return 127 * SPREAD / 74 if eight_bits else 127 * 31 * SPREAD / (8 * 18.5)
