"""The tree of a collection as it is kept: each document's own part, and the nodes over documents.

A document's part is one row that never changes and goes with the document. No other row has a text
in it, or a vector: what a node says is made of its leaves, as the caller sees them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stores.sqlite.catalogue import MAX_VARIABLES
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.permissions import IS_ROW
from stores.sqlite.sums import CHUNK, TREE, sign
from stores.sqlite.writer import bump

Bytes = NDArray[np.int8]
ROOT = 0  # the node over all documents
_NUMBERS = "(SELECT CAST(value AS INTEGER) FROM json_each({}))"


class TreeLeaf(NamedTuple):
    """Hold text[start:end] of the chunk `ordinal` of a document, about 100 tokens.

    `section` is its heading path; `keywords` are pairs (term, as it is written), `questions`
    what the leaf may answer, the best first.
    """

    ordinal: int
    start: int
    end: int
    tokens: int
    section: str
    keywords: tuple[tuple[str, str], ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True)
class DocumentTree:
    """Hold a document's leaves in reading order and the nodes over them, the root last.

    `nodes` are the members of each: a leaf by its place, or -1 - n for the node n, which stands
    before. `vectors` has a row per leaf, scaled to its largest number. No leaves, no nodes.
    """

    leaves: tuple[TreeLeaf, ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()
    vectors: Bytes = field(default_factory=lambda: np.empty((0, 0), np.int8), repr=False)

    @property
    def centre(self) -> Bytes:
        """Return the middle of its leaves, scaled to its largest number."""
        middle: Bytes = as_bytes(self.vectors.astype(np.float32).mean(axis=0, keepdims=True))[0]
        return middle


def as_bytes(rows: NDArray[np.float32]) -> Bytes:
    """Return rows scaled to their largest numbers, which keeps their directions within 1 %."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(np.rint(127 * rows / np.maximum(largest, 1e-12)).astype(np.int8))


class DocumentCentre(NamedTuple):
    """Hold the middle of a document's leaves, and how many tokens they have."""

    vector: Bytes
    tokens: int


class TreeChunk(NamedTuple):
    """Hold what a leaf is cut from."""

    chunk_id: str
    ordinal: int
    text: str
    kind: str
    section: str


class TreeSource(NamedTuple):
    """Hold a document that is to be cut into leaves."""

    row: int
    title: str
    language: str
    chunks: list[TreeChunk]


@dataclass(frozen=True)
class TreeRecord:
    """Hold a whole tree: documents by row id, and the members of each node over them.

    A member above 0 is a document, one below 0 the node of that number without its sign.
    """

    documents: Mapping[int, DocumentTree]
    members: Mapping[int, Sequence[int]]
    version: int


class SqliteTrees(CataloguePart):
    """Keep trees in the catalogue."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._records: dict[tuple[int, str], TreeRecord] = {}
        self._lock = threading.Lock()

    def recipes(self, collection_id: int) -> list[str]:
        query = "SELECT DISTINCT recipe FROM tree_documents WHERE collection_id = ?"
        return [row[0] for row in self._all(query, (collection_id,))]

    def unbuilt(self, collection_id: int, recipe: str) -> list[int]:
        rows = self._all(
            f"""SELECT d.id FROM documents d WHERE d.collection_id = ? AND NOT {IS_ROW}
               AND d.id NOT IN (SELECT document FROM quarantine) AND NOT EXISTS
               (SELECT 1 FROM tree_documents w WHERE w.document = d.id AND w.recipe = ?)
               ORDER BY d.id""",
            (collection_id, recipe),
        )
        return [row[0] for row in rows]

    def sources(self, documents: Sequence[int]) -> Iterator[TreeSource]:
        for row in documents:
            found = self._one("SELECT title, language FROM documents WHERE id = ?", (row,))
            if found is None:
                continue
            chunks = self._all(
                f"""SELECT c.chunk_id, c.ordinal, c.text, c.kind, c.section FROM chunks c
                    WHERE c.document = ? AND c.sum IS {CHUNK} ORDER BY c.ordinal""",
                (row,),
            )
            yield TreeSource(row, found[0], found[1], [TreeChunk(*chunk) for chunk in chunks])

    def write_documents(
        self, collection_id: int, recipe: str, trees: Mapping[int, DocumentTree]
    ) -> None:
        with self._database.write() as connection:
            for row, tree in trees.items():
                shape = json.dumps([tree.leaves, tree.nodes], ensure_ascii=False)
                connection.execute("DELETE FROM tree_documents WHERE document = ?", (row,))
                centre = tree.centre.tobytes() if tree.leaves else b""
                tokens = sum(leaf.tokens for leaf in tree.leaves)
                values = (recipe, shape, tree.vectors.tobytes(), centre, tokens, row)
                connection.execute(
                    """INSERT INTO tree_documents SELECT d.id, ?, ?, ?, ?, ?, ?, NULL
                       FROM documents d WHERE d.id = ?""",
                    (collection_id, *values),
                )
                sign(connection, "tree_documents", "w.document = ?", row)

    def unplaced(self, collection_id: int, recipe: str) -> list[int]:
        rows = self._all(
            """SELECT w.document FROM tree_documents w WHERE w.collection_id = ? AND w.recipe = ?
               AND w.tokens > 0 AND NOT EXISTS
               (SELECT 1 FROM tree_members m WHERE m.document = w.document) ORDER BY w.document""",
            (collection_id, recipe),
        )
        return [row[0] for row in rows]

    def centres(
        self, collection_id: int, documents: Sequence[int] | None = None
    ) -> dict[int, DocumentCentre]:
        wanted = None if documents is None else json.dumps(list(documents))
        given = "" if wanted is None else "+"  # so that rows are looked up by their ids
        chosen = "" if wanted is None else f"AND document IN {_NUMBERS.format(':wanted')}"
        rows = self._all(
            f"""SELECT document, centre, tokens FROM tree_documents
                WHERE {given}collection_id = :c AND +tokens > 0 {chosen} ORDER BY document""",
            {"c": collection_id, "wanted": wanted},
        )
        return {row[0]: DocumentCentre(np.frombuffer(row[1], np.int8), row[2]) for row in rows}

    def members(self, collection_id: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for node, member in self._all(
            "SELECT node, coalesce(document, -child) FROM tree_members WHERE collection_id = ?"
            " ORDER BY rowid",
            (collection_id,),
        ):
            found.setdefault(node, []).append(member)
        return found

    def load(self, collection_id: int, recipe: str) -> TreeRecord:
        with self._lock:
            version = int(self._value("SELECT value FROM meta WHERE key = 'index_version'"))
            known = self._records.get((collection_id, recipe))
            if known is None or known.version != version:
                known = self._read(collection_id, recipe, version, known)
                self._records[collection_id, recipe] = known
            return known

    def _read(
        self, collection_id: int, recipe: str, version: int, before: TreeRecord | None
    ) -> TreeRecord:
        """Read a tree again; a document's part that was read before has not changed."""
        parts = dict(before.documents) if before else {}
        rows = self._all(
            "SELECT document FROM tree_documents WHERE collection_id = ? AND recipe = ?"
            " ORDER BY document",
            (collection_id, recipe),
        )
        wanted = [row[0] for row in rows]
        missing = [row for row in wanted if row not in parts]
        for at in range(0, len(missing), MAX_VARIABLES):
            parts |= self._read_documents(missing[at : at + MAX_VARIABLES])
        documents = {row: parts[row] for row in wanted if row in parts}
        return TreeRecord(documents, self.members(collection_id), version)

    def _read_documents(self, rows: Sequence[int]) -> dict[int, DocumentTree]:
        found = self._all(
            f"""SELECT w.document, w.shape, w.vectors FROM tree_documents w
                WHERE w.document IN {_NUMBERS.format("?")} AND w.sum IS {TREE}""",
            (json.dumps(list(rows)),),
        )
        return {document: _tree(shape, vectors) for document, shape, vectors in found}

    def replace_members(
        self, collection_id: int, members: Mapping[int, Sequence[int]], *, whole: bool = False
    ) -> None:
        with self._database.write() as connection:
            if whole:
                query = "DELETE FROM tree_members WHERE collection_id = ?"
                connection.execute(query, (collection_id,))
            for node, own in members.items():
                query = "DELETE FROM tree_members WHERE collection_id = ? AND node = ?"
                connection.execute(query, (collection_id, node))
                connection.executemany(
                    """INSERT INTO tree_members SELECT ?1, ?2, iif(?3 < 0, -?3, NULL),
                       iif(?3 > 0, ?3, NULL) WHERE ?3 < 0
                       OR EXISTS (SELECT 1 FROM tree_documents WHERE document = ?3)""",
                    [(collection_id, node, member) for member in own],
                )
            bump(connection)

    def clear(self, collection_id: int) -> None:
        with self._database.write() as connection:
            for table in ("tree_members", "tree_documents"):
                connection.execute(f"DELETE FROM {table} WHERE collection_id = ?", (collection_id,))
            bump(connection)

    def chunk_ids(self, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        rows = self._all(
            """SELECT c.document, c.ordinal, c.chunk_id FROM json_each(?) wanted
               CROSS JOIN chunks c ON 
               c.document = CAST(json_extract(wanted.value, '$.document') AS INTEGER)
               AND c.ordinal = CAST(json_extract(wanted.value, '$.ordinal') AS INTEGER)""",
            (json.dumps([{"document": d, "ordinal": o} for d, o in sorted(set(places))]),),
        )
        return {(row[0], row[1]): row[2] for row in rows}


def _tree(shape: str, vectors: bytes) -> DocumentTree:
    leaves, nodes = json.loads(shape)
    made = []
    for ordinal, start, end, tokens, section, keywords, questions in leaves:
        pairs = tuple((term, written) for term, written in keywords)
        made.append(TreeLeaf(ordinal, start, end, tokens, section, pairs, tuple(questions)))
    rows = np.frombuffer(vectors, np.int8)
    rows = rows.reshape(len(made), -1) if made else np.empty((0, 0), np.int8)
    return DocumentTree(tuple(made), tuple(map(tuple, nodes)), rows)
