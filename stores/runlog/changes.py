"""Say what documents that a run read have become since."""

from __future__ import annotations

from core.auth import AuthContext
from core.metadata import ROW
from core.question import names_of
from core.trace import RunRecord
from stores.ports import Catalogue


def changed_since(run: RunRecord, catalogue: Catalogue, auth: AuthContext) -> list[str]:
    """Say how many passages of a run have another text by now, or are gone; nothing for none.

    Nor of a run whose details are withheld from the caller.
    """
    if run.result.get("withheld") or catalogue.index_version() == run.index_version:
        return []
    kept = {one.chunk_id: one.text for one in run.evidence if one.kind != ROW}
    for collection in catalogue.collections(auth.tenant):
        if collection.name in names_of(run.collection):
            for name, one in catalogue.evidence(auth, collection.id, list(kept)).items():
                if kept.get(name) == one.text:
                    del kept[name]
    if not kept:
        return []
    return [
        f"the documents have changed since: passages that read otherwise or are gone: {len(kept)}"
    ]
