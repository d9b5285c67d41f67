"""What callers have used of the chat model in the last 24 hours, kept when the process ends."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable

from stores.sqlite.database import Database

HOUR = 3600
HOURS = 24  # the window moves by whole hours

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
                """INSERT INTO spending VALUES (?, ?, ?, ?) ON CONFLICT DO
                   UPDATE SET tokens = tokens + excluded.tokens""",
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
        with self._lock:
            hours = self._hours.get((tenant, user), {})
            return [(hour, tokens) for hour, tokens in hours.items() if hour > oldest]

    def _hour(self) -> int:
        return int(self._clock() // HOUR)

    def _oldest(self) -> int:
        return self._hour() - HOURS
