"""Settings: run llama-server beside Carrel (`carrel llm serve`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import Field

from core.fields.group import IGNORED, Group


def _home() -> Path:
    return Path(platformdirs.user_state_dir("carrel")) / "llm"


def _model_folder() -> Path:
    return Path(platformdirs.user_data_dir("carrel")) / "models"


class LlamaSettings(Group):
    """Run llama-server beside Carrel (`carrel llm serve`)."""

    server: Annotated[str, IGNORED] = Field(
        "", description="Path of llama-server; empty: from PATH, else llama_cpp.server."
    )
    home: Path = Field(
        default_factory=_home, description="Folder of the server's state, key and log."
    )
    model_folder: Path = Field(
        default_factory=_model_folder, description="Folder that `carrel models pull` fills."
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
