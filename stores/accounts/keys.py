"""Callers: their keys, which are shown once and kept as a hash, and the tokens they have spent."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from core.auth import AuthContext, checked_sources
from core.errors import CallerError, PolicyError
from core.metadata import ANY
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.sums import KEY as SOUND
from stores.sqlite.sums import sign

PREFIX = "carrel_"
FACTS = ("user", "roles", "sources", "version_policy")
SECRET_BYTES = 32  # 256 bits: nobody guesses one, however fast they hash
KEY = re.compile(PREFIX + r"([0-9a-f]{12})_[0-9a-f]{64}", re.ASCII)
# A name that somebody has used, or that documents are open to.
_USED = f"""SELECT {
    " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE tenant = :tenant AND user = :user)"
        for table in ("api_keys", "runs", "conversations", "feedback", "jobs", "spending")
    )
} OR EXISTS (SELECT 1 FROM document_acl a JOIN documents d ON d.id = a.document
              WHERE a.principal = 'user:' || :user AND d.tenant = :tenant)"""
NO_DIGEST = "0" * 64  # what a key without a row is compared with, so that it takes as long

OPERATOR = (
    "leave the name out or give another; the operator can make it with `carrel keys create --user`"
)
DAMAGED = "a key is damaged in the catalogue and not accepted; `carrel doctor` names it"

Now = Callable[[], datetime.datetime]


def utc_now() -> datetime.datetime:
    """Return the present time in UTC."""
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class Key:
    """Describe a key; times are ISO 8601 in UTC, empty for never.

    `rate` (questions a minute) and `tokens_per_day` are its own limits, 0 for none, None where the
    settings say it.
    """

    id: str
    auth: AuthContext
    created_at: str
    expires_at: str = ""
    revoked_at: str = ""
    rate: int | None = None
    tokens_per_day: int | None = None

    def describe(self) -> dict[str, object]:
        """Return the key as it is listed; its secret is kept nowhere."""
        sources = self.auth.allowed_sources
        return {
            "id": self.id,
            "tenant": self.auth.tenant,
            "user": self.auth.user,
            "roles": sorted(self.auth.roles),
            "sources": None if sources is None else list(sources),
            "version_policy": self.auth.version_policy,
            "created_at": self.created_at,
            "expires_at": self.expires_at or None,
            "revoked_at": self.revoked_at or None,
            "rate": self.rate,
            "tokens_per_day": self.tokens_per_day,
        }

    def facts(self) -> dict[str, object]:
        """Return the facts that the audit log records of a key that is made or revoked."""
        facts = {name: value for name, value in self.describe().items() if name in FACTS}
        return {"key": self.id, **facts, "expires_at": self.expires_at}


class Keys(CataloguePart):
    """Make, find, list and revoke keys; changes hold at once, also for a server that runs."""

    def __init__(self, database: Database, now: Now = utc_now) -> None:
        super().__init__(database)
        self._now = now

    def create(
        self,
        tenant: str,
        *,
        user: str = "",
        roles: frozenset[str] = frozenset(),
        sources: Sequence[str] | None = None,
        version_policy: str = ANY,
        days: int = 0,
        rate: int | None = None,
        tokens_per_day: int | None = None,
        unused: bool = False,
    ) -> tuple[str, Key]:
        """Return a new key and its description; without `days` it does not expire.

        It is confined to `sources` (shell patterns, None for all) and to a version policy (see
        AuthContext). Without a name its user is the key's own, so that two keys do not read each
        other's runs. With `unused` the name must be one that nobody has used; raises PolicyError.
        """
        key_id = secrets.token_hex(6)
        auth = AuthContext(
            tenant=tenant,
            user=user or f"key.{key_id}",
            roles=roles,
            allowed_sources=None if sources is None else checked_sources(sources),
            version_policy=version_policy,
        )
        now = self._now()
        try:
            expires = moment_text(now + datetime.timedelta(days=days)) if days else ""
        except OverflowError:
            raise CallerError(
                "a key expires before the year 10000", value=f"{days} days", hint="give fewer days"
            ) from None
        text = f"{PREFIX}{key_id}_{secrets.token_hex(SECRET_BYTES)}"
        key = Key(key_id, auth, moment_text(now), expires, rate=rate, tokens_per_day=tokens_per_day)
        with self._database.write() as connection:
            named = {"tenant": tenant, "user": auth.user}
            if unused and connection.execute(_USED, named).fetchone()[0]:
                raise PolicyError(
                    "a key for a name that was used before reads what was asked under it",
                    value=user,
                    hint=OPERATOR,
                )
            connection.execute(
                "INSERT INTO api_keys VALUES (?, ?, ?, ?, ?, ?, ?, '', ?, ?, NULL, ?)",
                (
                    *(key_id, _digest(text), tenant, auth.user),
                    *(json.dumps(sorted(roles)), key.created_at, expires, rate, tokens_per_day),
                    _scope(auth),
                ),
            )
            sign(connection, "api_keys", "k.id = ?", key_id)
        return text, key

    def verified(self, text: str) -> Key | None:
        """Return the key of this text, None when it is unknown, expired or revoked."""
        match = KEY.fullmatch(text)
        row = self._row(match[1]) if match is not None else None
        good = hmac.compare_digest(_digest(text), row["digest"] if row is not None else NO_DIGEST)
        return self._good(row) if good else None

    def good(self, key_id: str) -> Key | None:
        """Return the key of this id, None when it is unknown, expired or revoked."""
        return self._good(self._row(key_id))

    def _row(self, key_id: str) -> sqlite3.Row | None:
        query = f"SELECT k.*, k.sum IS {SOUND} AS sound FROM api_keys k WHERE k.id = ?"
        row: sqlite3.Row | None = self._one(query, (key_id,))
        return row

    def _good(self, row: sqlite3.Row | None) -> Key | None:
        if row is None or row["revoked_at"]:
            return None
        if not row["sound"]:  # its roles may be others than it was given
            self._database.condition.report(f"key {row['id']}", DAMAGED)
            return None
        if row["expires_at"] and row["expires_at"] <= moment_text(self._now()):
            return None
        return _key(row)

    def listed(self, tenant: str = "") -> list[Key]:
        """List the keys of one tenant, or all, the oldest first."""
        query = "SELECT * FROM api_keys WHERE :t = '' OR tenant = :t ORDER BY created_at, id"
        return [_key(row) for row in self._all(query, {"t": tenant})]

    def revoke(self, key_id: str) -> Key:
        """Revoke a key for good and return it; once revoked, the first time stays."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at = ''",
                (moment_text(self._now()), key_id),
            )
            sign(connection, "api_keys", "k.id = ?", key_id)
            row = connection.execute("SELECT * FROM api_keys WHERE id = ?", (key_id,)).fetchone()
        if row is None:
            raise CallerError(
                "a key is named by its id",
                value=None if key_id.startswith(PREFIX) else key_id,  # a key pasted by mistake
                hint="`carrel keys list` shows the ids",
            )
        return _key(row)


def moment_text(moment: datetime.datetime) -> str:
    """Return a moment as it is kept: ISO 8601 in UTC, to the millisecond."""
    return moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds")


def _digest(text: str) -> str:
    # The secret is 256 random bits: nothing can be guessed, so a slow hash would only cost time.
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _scope(auth: AuthContext) -> str | None:
    """Return a key's confinement as it is stored, None for none."""
    if auth.allowed_sources is None and auth.version_policy == ANY:
        return None
    scope = {"allowed_sources": auth.allowed_sources, "version_policy": auth.version_policy}
    return json.dumps(scope, ensure_ascii=False)


def _key(row: sqlite3.Row) -> Key:
    auth = AuthContext(
        tenant=row["tenant"],
        user=row["user"],
        roles=frozenset(json.loads(row["roles"])),
        **json.loads(row["scope"] or "{}"),
    )
    known = {one.name: row[one.name] for one in fields(Key) if one.name != "auth"}
    return Key(auth=auth, **known)


HOUR = 3600  # seconds
HOURS = 24  # a day, as `tokens_per_day` says; the window moves by whole hours

Caller = tuple[str, str]  # tenant and user


class Spending:
    """Count tokens for each caller and hour; asked often, so the counts are kept in memory."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """Read what was spent before; `clock` is in seconds since 1970."""
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._hours: dict[Caller, dict[int, int]] = defaultdict(dict)
        rows = database.read().execute("SELECT * FROM spending WHERE hour > ?", (self._oldest(),))
        for row in rows:
            self._hours[row["tenant"], row["user"]][row["hour"]] = row["tokens"]

    def add(self, tenant: str, user: str, tokens: int) -> None:
        """Charge tokens to a caller and keep it; what is older than the window is forgotten."""
        hour, oldest = self._hour(), self._oldest()
        with self._lock:
            hours = self._hours[tenant, user]
            hours[hour] = hours.get(hour, 0) + tokens
            for past in [one for one in hours if one <= oldest]:
                del hours[past]
        with self._database.write() as connection:
            connection.execute(
                """INSERT INTO spending VALUES (?, ?, ?, ?) ON CONFLICT
                   (tenant, user, hour) DO UPDATE SET tokens = spending.tokens + excluded.tokens""",
                (tenant, user, hour, tokens),
            )
            connection.execute(
                "DELETE FROM spending WHERE tenant = ? AND user = ? AND hour <= ?",
                (tenant, user, oldest),
            )

    def spent(self, tenant: str, user: str) -> int:
        """Return the tokens that a caller has used in the window."""
        return sum(tokens for _, tokens in self._within(tenant, user))

    def seconds_until(self, tenant: str, user: str, allowed: int) -> int:
        """Return after how many seconds less than `allowed` is spent, 0 when it is so now."""
        kept = self._within(tenant, user)
        left = sum(tokens for _, tokens in kept)
        for hour, tokens in sorted(kept):
            if left < allowed:
                break
            left -= tokens
            until = (hour + HOURS) * HOUR
            if left < allowed:
                return max(1, int(until - self._clock()) + 1)
        return 0 if left < allowed else HOURS * HOUR

    def _within(self, tenant: str, user: str) -> list[tuple[int, int]]:
        oldest = self._oldest()
        if self._database.coordination.is_shared:  # other processes spend as well
            rows = self._database.read().execute(
                "SELECT hour, tokens FROM spending WHERE tenant = ? AND user = ? AND hour > ?",
                (tenant, user, oldest),
            )
            return [(row["hour"], row["tokens"]) for row in rows]
        with self._lock:
            hours = self._hours.get((tenant, user), {})
            return [(hour, tokens) for hour, tokens in hours.items() if hour > oldest]

    def _hour(self) -> int:
        return int(self._clock() // HOUR)

    def _oldest(self) -> int:
        return self._hour() - HOURS
