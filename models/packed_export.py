"""Write the ONNX graphs of packed weights, without torch: a BERT encoder, and the reader.

The embedding table stays at 4 bits (48 MB instead of 384). Projections take int8 numbers, whose
range is measured at each run, so that texts are run one at a time: in a batch a vector would
depend on its neighbours. The second half of a feed-forward layer stays at 4 bits with float input,
which has outliers that int8 would round the rest away for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from models.packed_weights import BLOCK, PackedWeights

if TYPE_CHECKING:
    Floats = NDArray[np.float32]

OPSETS = {"": 21, "com.microsoft": 1}  # the first with 4-bit tensors, and onnxruntime's own
IR_VERSION = 10  # the first one with 4-bit tensors
FUSED = frozenset(
    "GatherBlockQuantized DynamicQuantizeMatMul MatMulNBits MultiHeadAttention"
    " SkipLayerNormalization Gelu".split()
)
# Outlying columns of a layer's input grow with the gain and bias of the normalisation before it;
# they are scaled down and the weights up (SmoothQuant, Xiao et al. 2023, arXiv 2211.10438).
GAIN, POWER = 2.5, 0.75


def export_packed(weights: PackedWeights, target: Path) -> None:
    """Write the encoder with mean pooling; inputs of shape (1, tokens)."""
    graph = EncoderGraph(weights)
    hidden = graph.encode()
    graph.node("Identity", [hidden], "tokens")
    graph.node("ReduceMean", ["tokens", graph.tensor(np.array([1]))], "mean", keepdims=0)
    graph.node("LpNormalization", ["mean"], "embedding", axis=1, p=2)
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
    shapes = {"embedding": [1, weights.width], "tokens": [1, "tokens", weights.width]}
    graph.save("encoder", ids, shapes, target)


class EncoderGraph:
    """Collect nodes and tensors; every method returns the name of its output."""

    def __init__(self, weights: PackedWeights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def node(self, kind: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:  # noqa: ANN401 - as onnx
        """Add a node."""
        named = outputs or (f"{kind}_{len(self.nodes)}",)
        domain = "com.microsoft" if kind in FUSED else ""
        self.nodes.append(helper.make_node(kind, inputs, named, domain=domain, **attributes))
        return named[0]

    def tensor(self, values: NDArray[Any]) -> str:
        """Add a constant."""
        name = f"tensor_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def save(
        self, name: str, given: ValueInfoProto, shapes: Mapping[str, Sequence[Any]], target: Path
    ) -> None:
        """Write the graph from its one input to outputs of these shapes."""
        outputs = [
            helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()
        ]
        made = helper.make_graph(self.nodes, name, [given], outputs, self.tensors)
        opsets = [helper.make_opsetid(*opset) for opset in OPSETS.items()]
        onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION), target)

    def encode(self) -> str:
        """Send the words through all layers."""
        hidden = self.embeddings()
        for number in range(self.weights.layers):
            hidden = self.layer(hidden, number)
        return hidden

    def embeddings(self) -> str:
        """Add positions and the only type that is used to the words, normalise."""
        weights = self.weights
        found = self.words()
        kinds = weights.vector("emb.type")[: weights.width]
        places = self.tensor(weights.vector("emb.pos").reshape(-1, weights.width) + kinds)
        one, two = self.tensor(np.array([1])), self.tensor(np.array([2]))
        length = self.node("Slice", [self.node("Shape", [found]), one, two])
        place = self.node("Slice", [places, self.tensor(np.array([0])), length])
        total = self.node("Add", [found, place])
        gain, bias = self.normalisation("emb.ln")
        return self.node(
            "LayerNormalization",
            [total, self.tensor(gain), self.tensor(bias)],
            epsilon=weights.epsilon,
            axis=-1,
        )

    def words(self) -> str:
        """Look words up in a table at 4 bits."""
        table = self.weights.matrix("emb.word", self.weights.width)
        # As signed numbers, -8 to 7, which need no zero points: the high bit of each is flipped.
        signed = (table.pairs() ^ 0x88).tobytes()
        words = helper.make_tensor("words", TensorProto.INT4, table.numbers.shape, signed, raw=True)
        self.tensors.append(words)
        return self.node(
            "GatherBlockQuantized",
            ["words", "input_ids", self.tensor(table.scales)],
            gather_axis=0,
            quantize_axis=1,
            block_size=BLOCK,
        )

    def layer(self, hidden: str, number: int) -> str:
        """Attend and feed forward."""
        weights, name = self.weights, f"l{number}."
        width = weights.width
        before = f"l{number - 1}.oln" if number else "emb.ln"
        joined = self.int8([f"{name}{part}" for part in "qkv"], hidden, width, before)
        parts = [f"{part}_{number}" for part in "qkv"]
        self.node("Split", [joined], *parts, axis=-1, num_outputs=len(parts))
        seen = self.node("MultiHeadAttention", parts, num_heads=weights.heads)
        attended = self.int8([f"{name}ao"], seen, width)
        hidden = self.add_and_norm(attended, hidden, f"{name}aln")
        inner = self.node("Gelu", [self.int8([f"{name}fi"], hidden, width, f"{name}aln")])
        columns = len(weights.vector(f"{name}fi.b"))
        outer = self.outer(f"{name}fo", inner, columns)
        bias = self.tensor(weights.vector(f"{name}fo.b"))
        return self.add_and_norm(outer, hidden, f"{name}oln", bias)

    def outer(self, name: str, value: str, columns: int) -> str:
        """Multiply by the second matrix of a feed-forward layer, at 4 bits."""
        packed = self.weights.matrix(f"{name}.w", columns)
        return self.product(value, packed.pairs(), packed.scales, columns, bits=4)

    def product(
        self, value: str, numbers: NDArray[Any], scales: Floats, columns: int, *, bits: int
    ) -> str:
        """Multiply by a matrix of numbers of some bits, each block of which has a scale."""
        rows = len(numbers)
        return self.node(
            "MatMulNBits",
            [
                value,
                self.tensor(numbers.reshape(rows, -1, BLOCK * bits // 8)),
                self.tensor(scales.reshape(-1)),
            ],
            K=columns,
            N=rows,
            bits=bits,
            block_size=BLOCK,
            accuracy_level=1,
        )

    def int8(self, names: list[str], value: str, columns: int, before: str = "") -> str:
        """Multiply by the joined matrices of names and add their biases."""
        matrix = np.concatenate([self.weights.matrix(f"{n}.w", columns).values() for n in names])
        bias = np.concatenate([self.weights.vector(f"{name}.b") for name in names])
        if before:
            gain, shift = self.normalisation(before)
            smooth = (np.abs(shift) + GAIN * np.abs(gain)) ** POWER
            smooth /= np.exp(np.log(smooth).mean())
            matrix = matrix * smooth
            value = self.node("Mul", [value, self.tensor(1 / smooth)])
        scales = (np.abs(matrix).max(axis=1) / 127).astype(np.float32)
        rounded = np.rint(matrix / scales[:, None]).astype(np.int8).T
        given = [value, self.tensor(rounded), self.tensor(scales), "", self.tensor(bias)]
        return self.node("DynamicQuantizeMatMul", given)

    def add_and_norm(self, value: str, skipped: str, name: str, *bias: str) -> str:
        """Add the skip connection and a bias, then normalise."""
        gain, shift = self.normalisation(name)
        return self.node(
            "SkipLayerNormalization",
            [value, skipped, self.tensor(gain), self.tensor(shift), *bias],
            epsilon=self.weights.epsilon,
        )

    def normalisation(self, name: str) -> tuple[Floats, Floats]:
        """Return the gain and the bias of a normalisation."""
        return self.weights.vector(f"{name}.w"), self.weights.vector(f"{name}.b")


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
        super().__init__(encoder)
        with np.load(reader, allow_pickle=False) as file:
            self._own = dict(file)

    def owns(self, name: str) -> bool:
        """Tell whether a matrix is the reader's own."""
        return f"{name}.scales" in self._own

    def read_matrix(self, name: str) -> Rounded:
        """Return a matrix of the reader."""
        return Rounded(self._own[name], self._own[f"{name}.scales"].astype(np.float32))

    def vector(self, name: str) -> Floats:
        """Return a tensor that is not packed, flat."""
        own = self._own.get(name)
        return super().vector(name) if own is None else own.astype(np.float32)

    def matrix(self, name: str, columns: int) -> Any:  # noqa: ANN401 - both kinds have `values`
        """Return a tensor of shape (outputs, columns)."""
        return self.read_matrix(name) if self.owns(name) else super().matrix(name, columns)


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
        rounded = self.weights.read_matrix(f"{name}.w")
        numbers = (rounded.numbers.astype(np.int16) + ZERO).astype(np.uint8)
        scales = np.repeat(rounded.scales[:, None], columns // BLOCK, axis=1)
        return self.product(value, numbers, scales.astype(np.float32), columns, bits=8)


def export_reader(encoder: Path, reader: Path, target: Path) -> None:
    """Write the reader: words (1, tokens, width) in, logits of start, end and null out."""
    weights = ReaderWeights(encoder, reader)
    graph = ReaderGraph(weights)
    hidden = graph.encode()
    for name, given in (("spans", hidden), ("null", graph.first(hidden))):
        matrix = weights.vector(f"{name}.w").reshape(weights.width, -1)
        product = graph.node("MatMul", [given, graph.tensor(matrix)])
        graph.node("Add", [product, graph.tensor(weights.vector(f"{name}.b"))], name)
    shape = [1, "tokens", weights.width]
    words = helper.make_tensor_value_info("words", TensorProto.FLOAT, shape)
    graph.save("reader", words, {"spans": [1, "tokens", 2], "null": [1, 1, 1]}, target)
