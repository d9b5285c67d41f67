"""What a key with fewer roles sees of uploads, and what hidden records say about limits."""

from __future__ import annotations

from core.auth import AuthContext
from stores.runlog.jobs import JobRow

BOTH = AuthContext(tenant="A", user="lea", roles=frozenset({"legal", "writer"}))
FEWER = AuthContext(tenant="A", user="lea", roles=frozenset({"writer"}))


def _job(sender: AuthContext, *readers: str) -> JobRow:
    row = JobRow("j1", "upload", "A", "lea", "work", "secret.md", frozenset(readers))
    row.sent_by(sender, "key1")
    return row


def test_a_key_with_fewer_roles_does_not_see_what_another_sent() -> None:
    job = _job(BOTH, "legal")
    assert job.is_open_to(BOTH)
    assert not job.is_open_to(FEWER)
    assert _job(FEWER, "legal").is_open_to(FEWER)  # their own, though they may not read it
