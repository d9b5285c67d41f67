"""Whether the fields that a question filters by are there, as its caller may see them."""

from __future__ import annotations

from collections.abc import Sequence

from core.auth import AuthContext
from core.errors import CallerError
from core.filters import GENERAL, Filter
from stores.catalogue import Collection
from stores.database import Database
from stores.permissions import permission_filter

LISTED = 60  # fields in a hint

# A damaged text may be no JSON.
_KEYS = """FROM documents d
    JOIN json_each(CASE WHEN json_valid(d.metadata) THEN d.metadata ELSE '{}' END) j"""

_NAMED = "(lower(j.key) = :name OR j.key = :field)"  # SQLite's lower knows ASCII alone


def check_fields(
    database: Database,
    auth: AuthContext,
    collections: Sequence[Collection],
    where: Sequence[Filter],
) -> None:
    """Raise CallerError for a field that no document has which the caller may see."""
    names = {one.name: one.field for one in where if one.of_metadata}
    reader, known = database.read(), set[str]()
    for collection in collections if names else ():
        condition, parameters = permission_filter(auth.rights, collection.id)
        for name in names.keys() - known:
            query = f"SELECT 1 {_KEYS} WHERE {_NAMED} AND {condition} LIMIT 1"
            given = {**parameters, "name": name, "field": names[name]}
            if reader.execute(query, given).fetchone():
                known.add(name)
    if not (unknown := names.keys() - known):
        return
    there = set(GENERAL)
    for collection in collections:
        condition, parameters = permission_filter(auth.rights, collection.id)
        query = f"SELECT DISTINCT lower(j.key) {_KEYS} WHERE {condition}"
        there |= {row[0] for row in reader.execute(query, parameters)}
    listed = sorted(there)
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    raise CallerError(
        "no document here has the field that a filter names",
        value=names[min(unknown)],
        hint=f"fields: {', '.join(listed[:LISTED])}{more}",
    )
