"""A chat model of 1.5 MB with random weights that llama.cpp loads like a real Qwen3.

It has byte-level BPE, a chat template and `<|im_end|>`, and talks printable ASCII nonsense, about a
token for each byte: one dimension of the residual stream stays constant through all layers, and the
output layer uses it to vote against every token that is no printable ASCII. So it exercises
loading, serving, streaming, grammars, slots and context limits, but says nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HEADS, KV_HEADS, HEAD_SIZE = 4, 2, 32
# How much these tokens are favoured: answers and strings of JSON end after some tens of tokens.
ENDING, QUOTE = 1.2, 1.15


def byte_tokens() -> list[str]:
    """Return the 256 printable stand-ins of byte-level BPE in byte order, as GPT-2 has them."""
    kept = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in kept else next(spare)) for byte in range(256)]


def write_tiny_gguf(
    path: Path, layers: int = 2, width: int = 128, context: int = 8192, seed: int = 0
) -> Path:
    """Write the model and return its path."""
    import gguf

    tokens = byte_tokens()
    space = tokens[ord(" ")]
    pairs = [("t", "h"), ("h", "e"), ("i", "n"), ("e", "r"), (space, "t"), (space, "a")]
    tokens += [left + right for left, right in pairs]
    normal = len(tokens)
    tokens += SPECIALS
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_name("tiny-qwen3-random")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_SIZE)
    writer.add_value_length(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    kinds = [gguf.TokenType.NORMAL] * normal + [gguf.TokenType.CONTROL] * len(SPECIALS)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{left} {right}" for left, right in pairs])
    writer.add_bos_token_id(normal)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_pad_token_id(normal)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for name, tensor in _tensors(tokens, normal, layers, width, seed).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(
    tokens: list[str], normal: int, layers: int, width: int, seed: int
) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return (generator.standard_normal(shape) * 0.05).astype(np.float32)

    def into_residual(size: int) -> np.ndarray:
        weights = random(width, size)
        weights[0] = 0  # leaves dimension 0 as it is
        return weights

    def ones(size: int) -> np.ndarray:
        return np.ones(size, np.float32)

    embedding, output = random(len(tokens), width), random(len(tokens), width)
    embedding[:, 0] = 1
    for number, token in enumerate(tokens):
        output[number, 0] = 1 if token.isascii() and number < normal else -1
    output[-1, 0] = ENDING
    output[ord('"'), 0] = QUOTE
    tensors = {
        "token_embd.weight": embedding,
        "output_norm.weight": ones(width),
        "output.weight": output,
    }
    for layer in range(layers):
        block = {
            "attn_norm": ones(width),
            "ffn_norm": ones(width),
            "attn_q": random(HEADS * HEAD_SIZE, width),
            "attn_k": random(KV_HEADS * HEAD_SIZE, width),
            "attn_v": random(KV_HEADS * HEAD_SIZE, width),
            "attn_output": into_residual(HEADS * HEAD_SIZE),
            "attn_q_norm": ones(HEAD_SIZE),
            "attn_k_norm": ones(HEAD_SIZE),
            "ffn_gate": random(2 * width, width),
            "ffn_up": random(2 * width, width),
            "ffn_down": into_residual(2 * width),
        }
        tensors |= {f"blk.{layer}.{name}.weight": tensor for name, tensor in block.items()}
    return tensors
