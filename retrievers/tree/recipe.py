"""What a tree is made by: one of another recipe is built again."""

from __future__ import annotations

from retrievers.types import Index

LEAF_TOKENS = 100  # of a leaf, SPEC R1
MOST_TOKENS = 3500  # of the texts below a node; more are clustered again, SPEC R1
DIMENSION = 10  # of the reduced vectors, as in RAPTOR (arXiv:2401.18059)
LAYERS = 5  # of clusters over one another at most, as in RAPTOR
# Of a node's text where it is a member of another: its summary's; chosen, not measured.
SUMMARY_TOKENS = 150
VERSION = 2  # raise it when leaves are cut, described or clustered otherwise


def recipe_of(index: Index) -> str:
    """Name how the tree of a collection is made: with which reducer, of the vectors of a model."""
    model = index.embedder.model_id if index.embedder else ""
    reducer = index.settings.ingest.tree_reducer
    return f"{VERSION}/{LEAF_TOKENS}/{MOST_TOKENS}/{DIMENSION}/{reducer}/{model}"
