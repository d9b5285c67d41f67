"""What tests of ingest share: files written, ingested into `collection`, and looked at.

- `ingest`: ingests paths with settings and checks that all indexes agree afterwards.
- `corpus`: the files of commands.py.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection as Many
from pathlib import Path
from typing import Any

import pytest
from commands import index_of, write_files
from fakes import FakeEmbedder

from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.summary import Summary
from stores.sqlite.catalogue import Collection
from stores.store import Store


@pytest.fixture
def ingest(store: Store, embedder: FakeEmbedder, collection: Collection) -> Callable[..., Summary]:
    def run(
        *paths: Path,
        prune: bool = False,
        acl: Many[str] = (),
        into: Collection = collection,
        model: FakeEmbedder = embedder,
        second: Any = None,
        progress: Any = None,
        **values: Any,
    ) -> Summary:
        settings = Settings(**{"data": store.folder, **values})
        more = {"acl": frozenset(acl), "second": second, "progress": progress}
        summary = Pipeline(store, model, settings, into, **more).run(paths, prune=prune)
        assert index_of(store.folder).consistent
        return summary

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_files(tmp_path / "corpus")
