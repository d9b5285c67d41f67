"""`python -m benchmarks.llm` runs to its end on a tiny random model, and its figures add up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from llama_servers import LLAMA_SERVER

from benchmarks.random_model import SHAPES, write_random_model
from models.llama.gguf_file import read_gguf

ROOT = Path(__file__).resolve().parents[1]


def test_a_random_model_has_the_shape_it_says(tmp_path: Path) -> None:
    said: list[str] = []
    path = write_random_model(tmp_path / "tiny.gguf", SHAPES["tiny"], said.append)
    info = read_gguf(path)
    shape = SHAPES["tiny"]
    assert (info.layers, info.vocabulary) == (shape.layers, shape.vocabulary)
    assert (info.quantisation, info.has_chat_template) == ("Q8_0", True)
    assert len(said) == 1
    write_random_model(path, shape, said.append)
    assert len(said) == 1


@pytest.mark.skipif(not LLAMA_SERVER, reason="no llama-server: set CARREL_LLAMA__SERVER")
def test_the_benchmark_measures(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    sizes = ["--repeat", "1", "--decisions", "1", "--turns", "1", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.llm", "--make", "tiny", *sizes, "--json", str(out)],
        cwd=ROOT,
        env={**os.environ, "CARREL_LLAMA__SERVER": LLAMA_SERVER, "CARREL_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert [row["prompt_tokens"] for row in found["speed"]] == [128, 512, 2048]
    assert all(row["prompt_per_second"]["p50"] > 0 for row in found["speed"])
    verbs = {row["verb"]: row for row in found["decisions"]}
    assert list(verbs) == ["understand", "plan", "grade", "rewrite", "answer"]
    for row in verbs.values():
        assert row["calls"] >= 1
        assert 0 < row["outside_ms"]["p50"] < row["total_ms"]["p50"]
        assert row["model_ms"]["p50"] + row["overhead_ms"]["p50"] == pytest.approx(
            row["total_ms"]["p50"], abs=0.2
        )
    assert found["dialogue"]["turns"] == 1
    assert "overhead" in done.stdout
