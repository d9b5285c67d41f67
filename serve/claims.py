"""Who is at work on what: one request at a time for each conversation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.auth import AuthContext
from core.errors import InUseError

Key = tuple[str, str, str]


class Claims:
    """Let one request at a time have a conversation.

    A claim is the caller's own, so that nobody can hold another's conversation or learn of it.
    """

    def __init__(self) -> None:
        """Begin with nothing claimed."""
        self._lock = threading.Lock()
        self._held: set[Key] = set()

    def take(self, auth: AuthContext, name: str) -> Callable[[], None]:
        """Claim a conversation and return what gives it back; raises InUseError."""
        key = (auth.tenant, auth.user, name)
        with self._lock:
            if key in self._held:
                raise InUseError(
                    "a conversation has one request at a time",
                    value=name,
                    hint="wait until its last question is answered, or begin another one",
                )
            self._held.add(key)

        def give_back() -> None:
            with self._lock:
                self._held.discard(key)

        return give_back

    @contextmanager
    def held(self, auth: AuthContext, name: str) -> Iterator[None]:
        """Hold a conversation while the block works on it; raises InUseError."""
        give_back = self.take(auth, name)
        try:
            yield
        finally:
            give_back()
