"""Settings: run llama-server beside Carrel."""

from __future__ import annotations

from pathlib import Path

import platformdirs
from pydantic import BaseModel, Field


def _llm_home() -> Path:
    return Path(platformdirs.user_state_dir("carrel")) / "llm"


def _model_folder() -> Path:
    return Path(platformdirs.user_data_dir("carrel")) / "models"


class LlmServerFields(BaseModel):
    """Run llama-server beside Carrel (`carrel llm serve`)."""

    llama_server: str = Field(
        "", description="Path of llama-server; empty: from PATH, else llama_cpp.server."
    )
    llm_home: Path = Field(
        default_factory=_llm_home, description="Folder of the server's state, key and log."
    )
    model_folder: Path = Field(
        default_factory=_model_folder, description="Folder that `carrel models pull` fills."
    )
    llm_slots: int = Field(2, ge=1, le=64, description="Requests that the server works on at once.")
    llm_gpu_layers: int = Field(
        -1, ge=-1, description="Layers on the GPU; -1: as many as fit, 0 without a GPU."
    )
    llm_threads: int = Field(0, ge=0, description="CPU threads; 0: one for each core.")
    llm_connections: int = Field(
        64, ge=4, description="Connections that llama-server talks on at once; others wait."
    )
    llm_memory_margin: int = Field(
        256, ge=0, description="MiB of memory left free beside model, cache and buffers."
    )
    llm_log_bytes: int = Field(
        5_000_000, ge=10_000, description="Size at which the server's log is rotated."
    )
    llm_load_seconds: float = Field(
        600, gt=0, description="Longest wait until a started server has loaded its model."
    )
    llm_health_seconds: float = Field(
        4, gt=0, le=60, description="Time between two looks at the server's health."
    )
    llm_health_misses: int = Field(
        2, ge=1, description="Looks in a row without an answer after which it is restarted."
    )
    llm_stop_seconds: float = Field(
        3, gt=0, description="Time to end after SIGTERM; then comes SIGKILL."
    )
    llm_restarts: int = Field(
        5, ge=0, description="Restarts within ten minutes after which the supervisor gives up."
    )
