"""Which settings a running server takes over when it reads them again.

All others belong to what is made once: the data directory, models, sockets, threads.
"""

from __future__ import annotations

from core.settings import FIELDS, Settings, changes_of

LIVE = frozenset(name for name in FIELDS if changes_of(name).live)


def taken_over(old: Settings, new: Settings) -> Settings:
    """Return `old` with the live settings of `new`; raises ValidationError when they clash.

    A live setting that is no longer given anywhere is open to a collection's profile again.
    """
    given = {name for name in old.given() if name not in LIVE}
    given |= {name for name in new.given() if name in LIVE}
    return Settings(**{name: (new if name in LIVE else old).value(name) for name in given})
