"""Write the ONNX graph of the reader: the encoder's lower layers, its own upper ones, its head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from models.packed_export import IR_VERSION, OPSETS, EncoderGraph
from models.packed_weights import BLOCK, PackedWeights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

ZERO = 128  # what stands for 0 in a matrix at 8 bits


class Rounded(NamedTuple):
    """Hold a matrix at 8 bits: numbers (rows, columns) and a scale for each row."""

    numbers: NDArray[np.int8]
    scales: Floats

    def values(self) -> Floats:
        """Return the weights, shape (rows, columns)."""
        return self.numbers.astype(np.float32) * self.scales[:, None].astype(np.float32)


class ReaderWeights(PackedWeights):
    """Give the tensors of the encoder, but those that the reader has itself."""

    def __init__(self, encoder: Path, reader: Path) -> None:
        """Read both files."""
        super().__init__(encoder)
        with np.load(reader, allow_pickle=False) as file:
            self._own = dict(file)

    def owns(self, name: str) -> bool:
        """Tell whether a matrix is the reader's own."""
        return f"{name}.scales" in self._own

    def rounded(self, name: str) -> Rounded:
        """Return a matrix of the reader."""
        return Rounded(self._own[name], self._own[f"{name}.scales"].astype(np.float32))

    def vector(self, name: str) -> Floats:
        """Return a tensor that is not packed, flat."""
        own = self._own.get(name)
        return super().vector(name) if own is None else own.astype(np.float32)

    def matrix(self, name: str, columns: int) -> Any:  # noqa: ANN401 - both kinds have `values`
        """Return a tensor of shape (outputs, columns)."""
        return self.rounded(name) if self.owns(name) else super().matrix(name, columns)


class ReaderGraph(EncoderGraph):
    """Collect the nodes of the reader."""

    weights: ReaderWeights

    def words(self) -> str:
        """Take the vectors of words as they are given."""
        return "words"

    def first(self, hidden: str) -> str:
        """Return the state of the first token, shape (1, 1, width)."""
        return self.node("Gather", [hidden, self.tensor(np.array([0]))], axis=1)

    def outer(self, name: str, value: str, columns: int) -> str:
        """Multiply by the second matrix of a feed-forward layer, at 8 bits where it is own."""
        if not self.weights.owns(f"{name}.w"):
            return super().outer(name, value, columns)
        rounded = self.weights.rounded(f"{name}.w")
        numbers = (rounded.numbers.astype(np.int16) + ZERO).astype(np.uint8)
        rows = len(numbers)
        scales = np.repeat(rounded.scales[:, None], columns // BLOCK, axis=1)
        return self.node(
            "MatMulNBits",
            [
                value,
                self.tensor(numbers.reshape(rows, -1, BLOCK)),
                self.tensor(scales.astype(np.float32).reshape(-1)),
            ],
            K=columns,
            N=rows,
            bits=8,
            block_size=BLOCK,
            accuracy_level=1,
        )


def export_reader(encoder: Path, reader: Path, target: Path) -> None:
    """Write the reader: words (1, tokens, width) in, logits of start, end and null out."""
    import onnx
    from onnx import TensorProto, helper

    weights = ReaderWeights(encoder, reader)
    graph = ReaderGraph(weights)
    hidden = graph.embeddings()
    for layer in range(weights.layers):
        hidden = graph.layer(hidden, layer)
    for name, given in (("spans", hidden), ("null", graph.first(hidden))):
        matrix = weights.vector(f"{name}.w").reshape(weights.width, -1)
        product = graph.node("MatMul", [given, graph.tensor(matrix)])
        graph.node("Add", [product, graph.tensor(weights.vector(f"{name}.b"))], name)
    shape = [1, "tokens", weights.width]
    shapes: dict[str, list[int | str]] = {"spans": [1, "tokens", 2], "null": [1, 1, 1]}
    made = helper.make_graph(
        graph.nodes,
        "reader",
        [helper.make_tensor_value_info("words", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()],
        graph.tensors,
    )
    opsets = [helper.make_opsetid(*opset) for opset in OPSETS.items()]
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION), target)
