"""Run the notebooks in one kernel of this Python, and write their outputs into them.

    python scripts/run_notebooks.py

No kernel need be registered, nothing of the user's Jupyter is read, and no port is opened.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.util import run_sync

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = ("quickstart", "retrieval_lab", "trace_lab")
SECONDS = 120  # for a cell, on a busy machine
FORGET = "%reset -f"


class ThisPython(KernelSpecManager):
    """Name one kernel: the Python that runs this."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return how it is started, whatever name is asked for."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class Kernel:
    """Run notebooks one after another, each with empty names; modules stay loaded."""

    def __init__(self, manager: AsyncKernelManager, before: str) -> None:
        self._manager = manager
        self._before = f"{FORGET}\n{before}"

    def run(self, notebook: Any) -> Any:
        """Return the notebook with the outputs of its cells; a cell that fails raises."""
        made = nbformat.from_dict(notebook)
        made.cells.insert(0, nbformat.v4.new_code_cell(self._before))
        resources = {"metadata": {"path": str(FOLDER)}}
        client = NotebookClient(
            made,
            km=self._manager,
            timeout=SECONDS,
            coalesce_streams=True,
            resources=resources,
        )
        try:
            client.execute()
        finally:
            client.kc.stop_channels()
        del made.cells[0]
        for number, cell in enumerate((c for c in made.cells if c.cell_type == "code"), start=1):
            cell.execution_count = number
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = number
        return made


@contextmanager
def kernel(before: str = "", **environment: object) -> Iterator[Kernel]:
    """Start the kernel, with more in its environment when given, and stop it at the end.

    `before` is run ahead of every notebook.
    """
    with tempfile.TemporaryDirectory(prefix="nb") as folder:
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=ThisPython(),
            transport="ipc",
            connection_file=f"{folder}/k.json",
            ip=f"{folder}/k",
        )
        places = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        given = {**os.environ, **dict.fromkeys(places, folder)}
        given |= {name: str(value) for name, value in environment.items()}
        run_sync(manager.start_kernel)(env=given | {"PYTHONPATH": os.pathsep.join(paths)})
        try:
            yield Kernel(manager, before)
        finally:
            run_sync(manager.shutdown_kernel)(now=True)


def read(name: str) -> Any:
    """Return one of the notebooks."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def main() -> None:
    """Run all notebooks and write them back with their outputs."""
    with kernel() as running:
        for name in NOTEBOOKS:
            made = running.run(read(name))
            for cell in made.cells:
                cell.metadata.pop("execution", None)  # when each cell ran
            nbformat.write(made, FOLDER / f"{name}.ipynb")
            print(name)


if __name__ == "__main__":
    main()
