"""Locks, leases and small values of several processes, in the PostgreSQL that has the catalogue.

Locks are the server's own, of one connection: they end with the process that has them. The values
are in a table that the server does not log: after its crash they are gone, which ends no job and
loses no document.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from core.errors import DataLockedError
from stores.coordination import GONE_S, LEASE_S, JobLease, SharedCoordination, Window
from stores.postgres.connection import explained

CONNECT_S = 10  # for a server to answer; chosen, not measured
# A machine that is gone is noticed, and its locks end, after some 30 s; chosen, not measured.
ALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4"
POLL_S = 0.1  # between two tries of a lock that another process has; chosen, not measured
OWNER = "owner"
WINDOW_S = 60
YEARS_S = 3.2e9
TABLE = """CREATE UNLOGGED TABLE shared_values (
    kind text NOT NULL, key text NOT NULL, value jsonb NOT NULL, until timestamptz NOT NULL,
    PRIMARY KEY (kind, key))"""
_KEY = "hashtextextended('carrel.' || %s || '.' || current_schema(), 0)"
_TRY = f"SELECT pg_try_advisory_lock{{}}({_KEY})"
_UNLOCK = f"SELECT pg_advisory_unlock{{}}({_KEY})"
# Whether a lease is over: in time, or its worker gives no sign of life and its lock has ended.
_FREE = f"""({{0}}.until < now() OR {{0}}.until < now() + %(late)s::interval AND NOT EXISTS (
    SELECT 1 FROM pg_locks p WHERE p.locktype = 'advisory' AND p.objsubid = 1
        AND p.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (p.classid::bigint << 32 | p.objid::bigint) =
            {_KEY.replace("%s", "'worker.' || ({0}.value ->> 'worker')")}))"""
_CLAIM = f"""WITH one AS (
        SELECT j.id FROM jobs j
        LEFT JOIN shared_values l ON l.kind = 'lease' AND l.key = j.id
        WHERE j.state IN ('waiting', 'running') AND (l.key IS NULL OR {_FREE.format("l")})
            AND CASE WHEN %(job)s::text = '' THEN (j.kind = 'sync') = %(syncs)s
                ELSE j.id = %(job)s END
        ORDER BY j.number LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
    INSERT INTO shared_values AS s SELECT 'lease', id, %(value)s::jsonb,
        now() + %(lease)s::interval FROM one
    ON CONFLICT (kind, key) DO UPDATE SET value = s.value || excluded.value, until = excluded.until
    WHERE {_FREE.format("s")} RETURNING key, value"""
_RENEW = """UPDATE shared_values SET value = value || %(value)s::jsonb,
    until = now() + %(lease)s::interval
    WHERE kind = 'lease' AND key = %(job)s AND value ->> 'worker' = %(worker)s
    RETURNING coalesce((value ->> 'cancelled')::boolean, FALSE)"""
_PUT = """INSERT INTO shared_values AS s VALUES (%s, %s, %s, now() + %s::interval)
    ON CONFLICT (kind, key) DO UPDATE
    SET value = s.value || excluded.value, until = excluded.until"""
_CANCEL = """INSERT INTO shared_values AS s
    VALUES ('lease', %s, '{"cancelled": true}', '-infinity') ON CONFLICT (kind, key)
    DO UPDATE SET value = s.value || excluded.value"""
_RECENT = """(SELECT coalesce(jsonb_agg(h), '[]') FROM jsonb_array_elements(s.value) h
    WHERE h::float8 > extract(epoch FROM now()) - %(window)s)"""
_HIT = f"""INSERT INTO shared_values AS s
    VALUES ('rate', %(key)s, jsonb_build_array(extract(epoch FROM now())),
        now() + %(until)s::interval)
    ON CONFLICT (kind, key) DO UPDATE
    SET value = {_RECENT} || to_jsonb(extract(epoch FROM now())), until = excluded.until
    WHERE jsonb_array_length({_RECENT}) < %(limit)s RETURNING TRUE"""
_LOOK = f"""SELECT {_RECENT}, extract(epoch FROM now()) FROM shared_values s
    WHERE kind = 'rate' AND key = %(key)s"""
_BUMP = """INSERT INTO shared_values AS s VALUES ('version', %s, '1', 'infinity')
    ON CONFLICT (kind, key) DO UPDATE SET value = to_jsonb(s.value::int + 1)"""
_SWEEP = """DELETE FROM shared_values WHERE kind <> 'lease' AND until < now()
    OR kind = 'lease' AND until < now() AND NOT EXISTS (SELECT 1 FROM jobs j
        WHERE j.id = shared_values.key AND j.state IN ('waiting', 'running'))"""


class PostgresCoordination(SharedCoordination):
    """Use one connection, never for long: who must wait asks again and again."""

    def __init__(self, url: str, where: str) -> None:
        """Connect; `where` is the address as errors name it."""
        self._url, self._where = url, where
        self._lock = threading.RLock()
        self._taken: list[tuple[str, bool]] = []  # locks, and whether each is a shared one
        self._sharing: list[tuple[str, int]] = []  # shared locks, and which thread has each
        self._connection = self._connected()

    def _connected(self) -> psycopg.Connection[Any]:
        options = conninfo_to_dict(self._url).get("options") or ""
        given = make_conninfo(self._url, options=f"{options} {ALIVE}".strip())
        with explained():
            return psycopg.connect(
                given, autocommit=True, connect_timeout=CONNECT_S, application_name="carrel"
            )

    def check(self) -> None:
        """Connect again where the server has ended the connection, with its locks."""
        with self._lock:
            self._rows("SELECT 1")

    def _rows(self, query: str, values: Any = ()) -> list[Any]:  # noqa: ANN401 - as psycopg's
        with self._lock, explained():
            try:
                return self._sent(query, values)
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise
            self._connection = self._connected()  # the server was started anew, perhaps
            for name, shared in self._taken:
                if not self._locked(name, shared) and name == OWNER:
                    self._refuse("another process that owns it")
            return self._sent(query, values)

    def _sent(self, query: str, values: Any) -> list[Any]:  # noqa: ANN401 - as psycopg's
        found = self._connection.execute(query, values)
        return found.fetchall() if found.description else []

    def _locked(self, name: str, shared: bool) -> bool:
        return bool(self._sent(_TRY.format("_shared" if shared else ""), (name,))[0][0])

    def _refuse(self, who: str) -> None:
        raise DataLockedError(
            f"the database is in use by {who}",
            value=self._where,
            hint="stop it: one process at a time owns a catalogue with local vectors,"
            " and several share one data directory, not copies of it",
        )

    def own(self, *, shared: bool, place: str) -> None:
        """Hold the catalogue until closed, alone or with others at the same `place`.

        Raises DataLockedError.
        """
        with self._lock:
            if self._try(OWNER, shared=False):
                self.put("place", "", {"is": place}, YEARS_S)
                if shared:
                    self._try(OWNER, shared=True)
                    self._free(OWNER, shared=False)
                return
            if not shared or not self._try(OWNER, shared=True):
                self._refuse("another process that owns it")
            known = self.get("place", "")
            if known is not None and known["is"] != place:
                self._free(OWNER, shared=True)
                self._refuse("another process, with another copy of the data directory")

    def _try(self, name: str, *, shared: bool) -> bool:
        with self._lock:
            if not self._rows(_TRY.format("_shared" if shared else ""), (name,))[0][0]:
                return False
            self._taken.append((name, shared))
            return True

    def _free(self, name: str, *, shared: bool) -> None:
        with self._lock:
            self._taken.remove((name, shared))
            with suppress(psycopg.Error):  # a connection that is gone has freed it
                self._sent(_UNLOCK.format("_shared" if shared else ""), (name,))

    def acquire(self, name: str) -> bool:
        return self._try(name, shared=False)

    def release(self, name: str) -> None:
        self._free(name, shared=False)

    @contextmanager
    def lock(self, name: str, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
        mine = (name, threading.get_ident())
        while not (taken := self._taken_by(mine, shared=shared)) and wait:
            time.sleep(POLL_S)
        try:
            yield taken
        finally:
            if taken:
                with self._lock:
                    if shared:
                        self._sharing.remove(mine)
                    self._free(name, shared=shared)

    def _taken_by(self, mine: tuple[str, int], *, shared: bool) -> bool:
        with self._lock:
            name = mine[0]
            if shared:
                others = (name, False) in self._taken  # alone, by another thread
            else:
                others = any(one[0] == name and one != mine for one in self._sharing)
            if others or not self._try(name, shared=shared):
                return False
            if shared:
                self._sharing.append(mine)
            return True

    def claim(self, worker: str, *, syncs: bool, job: str = "") -> JobLease | None:
        value = json.dumps({"worker": worker, "stage": "", "done": 0, "total": 0})
        given = {"syncs": syncs, "job": job, "value": value, "lease": _seconds(LEASE_S)}
        given["late"] = _seconds(LEASE_S - GONE_S)
        return next((_lease(*row) for row in self._rows(_CLAIM, given)), None)

    def renew(self, worker: str, lease: JobLease) -> bool | None:
        value = json.dumps({"stage": lease.stage, "done": lease.done, "total": lease.total})
        given = {"job": lease.job, "worker": worker, "value": value, "lease": _seconds(LEASE_S)}
        rows = self._rows(_RENEW, given)
        return bool(rows[0][0]) if rows else None

    def drop(self, worker: str, job: str) -> None:
        self._rows(
            "DELETE FROM shared_values WHERE kind = 'lease' AND key = %s"
            " AND value ->> 'worker' = %s",
            (job, worker),
        )

    def cancel(self, job: str) -> None:
        self._rows(_CANCEL, (job,))

    def leases(self, jobs: Sequence[str]) -> dict[str, JobLease]:
        query = """SELECT key, value FROM shared_values
            WHERE kind = 'lease' AND key = ANY(%s) AND until > now()"""
        return {row[0]: _lease(*row) for row in self._rows(query, (list(jobs),))}

    def hit(self, key: str, limit: int, *, count: bool) -> Window:
        given = {"key": key, "limit": limit, "window": WINDOW_S, "until": _seconds(WINDOW_S)}
        counted = bool(count and self._rows(_HIT, given))
        recent, now = next(iter(self._rows(_LOOK, given)), ([], 0))
        oldest = min((float(one) for one in recent), default=float(now))
        allowed = counted if count else len(recent) < limit
        return Window(allowed, len(recent), oldest + WINDOW_S - float(now))

    def put(self, kind: str, key: str, value: Any, seconds: float) -> None:  # noqa: ANN401
        self._rows(_PUT, (kind, key, json.dumps(value), _seconds(seconds)))

    def get(self, kind: str, key: str) -> Any:  # noqa: ANN401
        query = "SELECT value FROM shared_values WHERE kind = %s AND key = %s AND until > now()"
        return next((row[0] for row in self._rows(query, (kind, key))), None)

    def agreed(self, name: str, value: str) -> str:
        query = """INSERT INTO shared_values VALUES ('agreed', %s, %s, 'infinity')
            ON CONFLICT DO NOTHING"""
        self._rows(query, (name, json.dumps(value)))
        return str(self.get("agreed", name))

    def remove(self, kind: str, key: str = "", **fields: str) -> list[Any]:
        query = """DELETE FROM shared_values WHERE kind = %s AND (%s = '' OR key = %s)
            AND value @> %s RETURNING value"""
        return [row[0] for row in self._rows(query, (kind, key, key, json.dumps(fields)))]

    def bump(self, name: str) -> None:
        self._rows(_BUMP, (name,))

    def versions(self) -> dict[str, int]:
        query = "SELECT key, value::int FROM shared_values WHERE kind = 'version'"
        return dict(self._rows(query))

    def sweep(self) -> None:
        self._rows(_SWEEP)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def make_table(execute: Callable[[str], Any]) -> None:
    """Make the table of values, where there is none."""
    execute(TABLE)


def _seconds(count: float) -> str:
    return f"{count:.3f} seconds"


def _lease(job: str, value: dict[str, Any]) -> JobLease:
    known = {one.name for one in fields(JobLease)} & value.keys()
    return JobLease(**{"job": job} | {name: value[name] for name in known})
