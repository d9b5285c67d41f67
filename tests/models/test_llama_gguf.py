"""What a GGUF file says of itself, and what a broken one is answered with."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_gguf import write_tiny_gguf

from core.errors import CarrelError, ModelError, OperatorError
from models.llama import plan
from models.llama.gguf_file import BLOCKS, FILE_TYPES, read_gguf
from models.llama.plan import cache_bytes, check_memory, memory_available, required_memory


def test_a_whole_file(tiny_model: Path) -> None:
    info = read_gguf(tiny_model)
    assert (info.architecture, info.name) == ("qwen3", "tiny-qwen3-random")
    assert (info.context, info.layers, info.vocabulary) == (8192, 2, 265)
    assert info.kv_width == 2 * 2 * (32 + 32)
    assert (info.quantisation, info.has_chat_template) == ("F32", True)
    tensors = gguf.GGUFReader(tiny_model).tensors
    assert info.parameters == sum(int(tensor.n_elements) for tensor in tensors)
    assert info.bytes == tiny_model.stat().st_size


def test_the_tables_are_those_of_llama_cpp() -> None:
    sizes = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert sizes == BLOCKS
    names = {kind.value: kind.name for kind in gguf.LlamaFileType if kind.name != "GUESSED"}
    short = {number: name.removeprefix("MOSTLY_") for number, name in names.items()}
    assert short | {0: "F32"} == FILE_TYPES


def test_arrays_of_numbers_are_understood(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "qwen3")
    writer.add_context_length(64)
    writer.add_block_count(3)
    writer.add_head_count(2)
    writer.add_head_count_kv([1, 2, 3])
    writer.add_embedding_length(8)
    writer.add_array("long", list(range(5000)))
    writer.add_array("words", ["é", "b" * 300])
    writer.add_tensor("a", np.ones(8, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    info = read_gguf(tmp_path / "m.gguf")
    assert info.kv_width == 6 * (4 + 4)
    assert not info.has_chat_template


BROKEN = {
    "empty.gguf": (b"", "starts with 'GGUF'"),
    "html.gguf": (b"<!doctype html>", "b'<!do'"),
    "short.gguf": (b"GGUF\x03", "cut off after 5 bytes"),
    "header.gguf": (b"GGUF" + struct.pack("<I", 3), "cut off after 8 bytes"),
    "old.gguf": (b"GGUF" + struct.pack("<I", 1), "version 1"),
    "big.gguf": (b"GGUF" + struct.pack(">I", 3), "big-endian"),
    "many.gguf": (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "cut off"),
    "kind.gguf": (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "type 99"),
    "array.gguf": (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 8, 9**19), "cut off"),
    "nothing.gguf": (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "no language model"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_model(name: str, tmp_path: Path) -> None:
    data, word = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError) as caught:
        read_gguf(tmp_path / name)
    assert word in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("where", ["", "missing.gguf"])
def test_what_is_no_file(where: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="must be a GGUF file"):
        read_gguf(tmp_path / where)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("cut") / "whole.gguf")


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere_is_told(share: float, whole: Path) -> None:
    data, cut = whole.read_bytes(), whole.with_name("cut.gguf")
    cut.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelError):
        read_gguf(cut)


@given(at=st.integers(4, 2000), byte=st.integers(0, 255))
def test_a_damaged_header_never_breaks_the_reader(at: int, byte: int, whole: Path) -> None:
    data, damaged = bytearray(whole.read_bytes()), whole.with_name("damaged.gguf")
    data[at] = byte
    damaged.write_bytes(data)
    try:
        read_gguf(damaged)
    except CarrelError as error:
        assert "damaged.gguf" in str(error)


def test_memory_is_file_cache_and_buffers(tiny_model: Path) -> None:
    info = read_gguf(tiny_model)
    assert cache_bytes(info, 1000, 2) == 256 * 2 * 1000 * 2
    more = required_memory(info, 2000, 1) - required_memory(info, 1000, 1)
    assert more == cache_bytes(info, 1000, 1)
    assert required_memory(info, 1000, 1) > info.bytes


def test_too_little_memory_is_told_with_numbers(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = read_gguf(tiny_model)
    monkeypatch.setattr(plan, "memory_available", lambda: 3 << 30)
    check_memory(info, 8192, 2)
    with pytest.raises(OperatorError) as caught:
        check_memory(info, 8192 * 1000, 2)
    assert "7.81 GiB" in str(caught.value)
    assert "3.00 GiB are free" in str(caught.value)
    assert "--context" in str(caught.value)
    check_memory(info, 8192 * 1000, 2, share=0.1)  # the rest is on a GPU
    with pytest.raises(OperatorError):
        check_memory(info, 8192, 2, margin=3 << 30)


def test_a_control_group_limits_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    monkeypatch.setattr(plan, "MEMINFO", meminfo)
    monkeypatch.setattr(plan, "CGROUPS", tmp_path)
    assert memory_available() == 8000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 4000\ninactive_file 900\n")
    assert memory_available() == 8000 * 1024
    (tmp_path / "memory.max").write_text("6000\n")
    assert memory_available() == 6000 - 5000 + 900
    for path in tmp_path.iterdir():
        path.unlink()
    assert memory_available() is not None
