"""The permission filter, in SQL: the only place that decides which documents a caller may see."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from core.auth import AuthContext
from core.filters import meets_filter
from core.versions import ANY, LATEST, document_family, version_order
from stores.sqlite.sums import DOCUMENT

Parameters = dict[str, object]
MATCHES = "source_matches"  # fnmatch.fnmatchcase(source, pattern)
MEETS, FAMILY, ORDER = "meets_filter", "document_family", "version_order"
# Whether a document's sum was seen to be right, and whether it is; registered by stores.database.
KNOWN, SOUND = "known_sum", "is_sound"
HAS_SUM = f"({KNOWN}(d.id, d.sum) OR {SOUND}(d.id, d.sum, {DOCUMENT}))"
GROUP = 100


def register_permissions(connection: sqlite3.Connection) -> None:
    """Let SQL on this connection use the functions of a permission filter."""

    def of_texts(function: Callable[..., str | bool]) -> Callable[..., str | bool]:
        def called(*values: bytes | str) -> str | bool:
            texts = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)
            return function(*texts)

        return called

    connection.create_function(MATCHES, 2, fnmatchcase, deterministic=True)
    connection.create_function(MEETS, -1, of_texts(meets_filter), deterministic=True)
    connection.create_function(FAMILY, 2, of_texts(document_family), deterministic=True)
    connection.create_function(ORDER, 1, of_texts(version_order), deterministic=True)


def permission_filter(
    auth: AuthContext,
    collection_id: int,
    sources: Sequence[str] = (),
    *,
    with_damaged: bool = False,
    sums: bool = True,
    table: str = "d",
) -> tuple[str, Parameters]:
    """Return an SQL condition over `documents d`, or another name in place of d; its parameters.

    A document is visible when it is of the caller's tenant and collection, is open to the tenant or
    names one of the caller's principals, lies within the allowed sources, fits the version policy,
    matches one of `sources` (shell patterns of the tool) when any are given, meets the caller's
    filters, was not found damaged, and has its sum: one flipped bit could open it. Without `sums`
    that is not looked at, for chunks that are compared with theirs and their document's before they
    become evidence, and for any name but d. With `with_damaged` damaged documents count as what
    their rows say.
    """
    parameters: Parameters = {"p_tenant": auth.tenant, "p_collection": collection_id}
    conditions = [
        f"{table}.tenant = :p_tenant",
        f"{table}.collection_id = :p_collection",
    ]
    if not with_damaged:  # rows that are not what was written
        conditions.append(f"{table}.id NOT IN (SELECT document FROM quarantine)")
    principals = _bind(parameters, "p_principal", sorted(auth.principals))
    conditions.append(
        f"({table}.is_open = 1 OR EXISTS (SELECT 1 FROM document_acl a"
        f" WHERE a.document = {table}.id AND a.principal IN ({principals})))"
    )
    if auth.allowed_sources is not None:
        conditions.append(_any_pattern(parameters, "p_allowed", auth.allowed_sources, table))
    if sources:
        conditions.append(_any_pattern(parameters, "p_source", sources, table))
    if auth.asked_version:
        parameters["p_version"] = auth.asked_version
        conditions.append(f"{table}.version IN ('', :p_version)")
    if auth.version_policy == LATEST or any(one.latest for one in auth.where):
        conditions.append(_latest(auth, collection_id, table, with_damaged=with_damaged))
    for n, one in enumerate(auth.where):
        if not one.latest:
            parameters[f"p_where{n}"] = str(one)
            columns = ", ".join(_bytes(table, column) for column in one.columns)
            conditions.append(f"{MEETS}(:p_where{n}, {columns})")
    if sums and not with_damaged and table == "d":  # last, since it reads the whole row
        conditions.append(HAS_SUM)
    return " AND ".join(conditions), parameters


def _latest(auth: AuthContext, collection_id: int, table: str, *, with_damaged: bool) -> str:
    """Return the condition that of its versions a document is the newest that the caller may see.

    One that is hidden from them is not known to be there. It has the same parameters.
    """
    rights = auth.rights
    if rights.version_policy == LATEST:
        rights = rights.model_copy(update={"version_policy": ANY})
    seen, _ = permission_filter(rights, collection_id, with_damaged=with_damaged, table="n")

    def family(name: str) -> str:
        return f"{FAMILY}({_bytes(name, 'title')}, {_bytes(name, 'source')})"

    def order(name: str) -> str:
        return f"{ORDER}({_bytes(name, 'version')})"

    return (
        f"({table}.version = '' OR ({family(table)}, {order(table)}) IN (SELECT {family('n')},"
        f" max({order('n')}) FROM documents n WHERE n.version <> '' AND {seen} GROUP BY 1))"
    )


def _bytes(table: str, column: str) -> str:
    """Return a column as SQL hands it to a function: a damaged text may be none."""
    return f"CAST({table}.{column} AS BLOB)"


def _bind(parameters: Parameters, prefix: str, values: Sequence[str]) -> str:
    names = [f"{prefix}{i}" for i in range(len(values))]
    parameters.update(zip(names, values, strict=True))
    return ", ".join(f":{name}" for name in names)


def _any_pattern(parameters: Parameters, prefix: str, patterns: Sequence[str], table: str) -> str:
    if not patterns:
        return "0"  # confined to nothing: fail closed
    names = [f"{prefix}{i}" for i in range(len(patterns))]
    parameters.update(zip(names, patterns, strict=True))
    tests = [_match(name, pattern, table) for name, pattern in zip(names, patterns, strict=True)]
    while len(tests) > 1:  # in groups, since SQLite limits the depth of an expression
        groups = [tests[start : start + GROUP] for start in range(0, len(tests), GROUP)]
        tests = [f"({' OR '.join(group)})" for group in groups]
    return tests[0]


def _match(name: str, pattern: str, table: str) -> str:
    """Use SQLite's own GLOB where it means the same: its sets are negated by ^, a shell's by !."""
    if "[" in pattern or "\x00" in pattern:
        return f"{MATCHES}({table}.source, :{name})"
    return f"{table}.source GLOB :{name}"
