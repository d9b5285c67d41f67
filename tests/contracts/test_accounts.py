"""Contract of Accounts: keys, tokens spent, jobs, and the audit log."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from core.auth import AuthContext
from core.errors import CallerError, PolicyError
from core.settings import Settings
from stores.accounts.audit import AuditEntry, AuditLog
from stores.accounts.keys import Keys
from stores.runlog.jobs import JobRow
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")


@pytest.fixture
def keys(store: Store) -> Keys:
    return store.accounts.keys


def test_a_key_is_its_caller(keys: Keys) -> None:
    text, key = keys.create(
        "acme", user="ann", roles=frozenset({"editor"}), sources=["docs/*"], version_policy="2",
        rate=3, tokens_per_day=9,
    )  # fmt: skip
    assert keys.verified(text) == keys.good(key.id) == key
    found = key.auth
    assert (found.tenant, found.user, found.roles) == ("acme", "ann", {"editor"})
    assert (found.allowed_sources, found.version_policy) == (("docs/*",), "2")
    assert (key.rate, key.tokens_per_day, key.expires_at) == (3, 9, "")
    _, other = keys.create("zoo")
    assert keys.listed() == [key, other]
    assert keys.listed("zoo") == [other]


def test_two_keys_without_a_user_are_two_users(keys: Keys) -> None:
    (_, one), (_, two) = keys.create("acme"), keys.create("acme")
    assert one.auth.user != two.auth.user


def test_a_name_that_was_used_is_not_given_again(store: Store, keys: Keys) -> None:
    keys.create("acme", user="ann", unused=True)
    store.runs.create_conversation("acme", "bob", "main")
    for name in ("ann", "bob"):
        with pytest.raises(PolicyError, match="used before"):
            keys.create("acme", user=name, unused=True)
        keys.create("zoo", user=name, unused=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.upper(),
        lambda text: " " + text,
        lambda text: text + "\n",
        lambda text: text.replace("carrel_", ""),
        lambda text: "",
    ],
)
def test_another_text_is_no_key(keys: Keys, change: Callable[[str], str]) -> None:
    text, _ = keys.create("acme")
    assert keys.verified(change(text)) is None


def test_the_secret_of_another_key_opens_nothing(keys: Keys) -> None:
    (one, _), (two, _) = keys.create("acme"), keys.create("zoo")
    mixed = "_".join([*one.split("_")[:2], two.split("_")[2]])
    assert keys.verified(mixed) is None


def test_only_a_hash_is_kept(keys: Keys, store: Store) -> None:
    text, key = keys.create("acme")
    secret = text.split("_")[-1]
    store.close()
    for path in store.folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert secret not in repr(key) + str(key.describe())


def test_an_expired_key_is_none(keys: Keys) -> None:
    text, key = keys.create("acme", days=-1)
    assert keys.verified(text) is keys.good(key.id) is None
    assert keys.listed() == [key]
    with pytest.raises(CallerError, match="year 10000"):
        keys.create("acme", days=10_000_000)


def test_a_revoked_key_stays_revoked(keys: Keys) -> None:
    text, key = keys.create("acme")
    first = keys.revoke(key.id)
    assert first.revoked_at and keys.revoke(key.id) == first
    assert keys.verified(text) is keys.good(key.id) is None
    with pytest.raises(CallerError, match="named by its id") as wrong:
        keys.revoke(text)
    assert text not in str(wrong.value)


def test_tokens_are_counted_for_each_caller_and_kept(
    store: Store, open_again: Callable[..., Store]
) -> None:
    spending = store.accounts.spending
    spending.add("acme", "ann", 300)
    spending.add("acme", "ann", 201)
    spending.add("zoo", "ann", 7)
    for known in (store, None):
        if known is None:
            store.close()
            spending = open_again().accounts.spending
        counts = [spending.spent(*who) for who in (("acme", "ann"), ("zoo", "ann"), ("a", "b"))]
        assert counts == [501, 7, 0]
    assert spending.seconds_until("acme", "ann", 502) == 0
    assert 23 * 3600 <= spending.seconds_until("acme", "ann", 501) <= 24 * 3600 + 1


def job(name: str, tenant: str = "acme", user: str = "ann") -> JobRow:
    made = JobRow(name, "upload", tenant, user, "main", f"{name}.txt", frozenset({"staff"}), 12)
    made.sent_by(ANN, "key1")
    return made


def test_a_job_comes_back_as_it_was_saved(store: Store) -> None:
    jobs = store.accounts.jobs(9)
    row = job("one")
    jobs.save(row)
    found = jobs.find("one")
    assert found is not None
    assert vars(found) == vars(row)
    assert found.sender() == (ANN, "key1")
    row.state, row.error, row.documents, row.notes = "failed", "no", 2, ["left out"]
    jobs.save(row)
    found = jobs.find("one")
    assert found is not None
    assert (found.state, found.error, found.documents) == ("failed", "no", 2)
    assert (found.notes, found.created_at) == (["left out"], row.created_at)
    assert jobs.find("none") is None


def test_jobs_are_listed_by_whose_they_are_and_what_is_left(store: Store) -> None:
    jobs = store.accounts.jobs(9)
    rows = [job("a"), job("b"), job("c", user="bob"), job("d", tenant="zoo")]
    rows[1].state = "running"
    for row in rows:
        jobs.save(row)
    rows[0].state = "done"
    jobs.save(rows[0])
    assert [row.id for row in jobs.open()] == ["b", "c", "d"]
    assert [row.id for row in jobs.newest("acme", "ann", 9)] == ["b", "a"]
    assert [row.id for row in jobs.newest("acme", None, 2)] == ["c", "b"]


def test_of_ended_jobs_the_newest_stay(store: Store) -> None:
    jobs = store.accounts.jobs(2)
    for name in ("waits", "a", "b", "c"):
        row = job(name)
        jobs.save(row)
        if name != "waits":
            row.state = "done"
            jobs.save(row)
    assert [row.id for row in jobs.newest("acme", None, 9)] == ["c", "b", "waits"]


def test_an_erased_job_does_not_come_back(store: Store) -> None:
    jobs = store.accounts.jobs(9)
    row = job("one")
    jobs.save(row)
    store.maintenance.forget_tenant("acme")
    row.state = "done"
    jobs.save(row)
    assert jobs.find("one") is None


@pytest.fixture
def log(store: Store) -> AuditLog:
    return store.accounts.audit(Settings(data=store.folder))


def entries(log: AuditLog) -> list[AuditEntry]:
    named = log.document("letter.txt")
    return [
        AuditEntry("login", ANN, {"key": "k1"}),
        AuditEntry("upload", ANN, named),
        AuditEntry("login_failed", None, {}),
        AuditEntry("login", AuthContext(tenant="zoo", user="eve"), {}),
    ]


def test_audit_rows_follow_each_other(log: AuditLog, store: Store) -> None:
    assert log.verify().rows == 0
    head = log.append(entries(log)[:2])
    last = log.append(entries(log)[2:])
    verdict = log.verify(head, last)
    assert (verdict.rows, verdict.head, verdict.problem) == (4, last, "")
    assert [row["seq"] for row in log.rows()] == [1, 2, 3, 4]
    again = store.accounts.audit(Settings(data=store.folder))
    assert again.verify(head, last).problem == ""
    assert again.append(entries(log)[:1]).seq == 5
    assert log.append(entries(log)[:1]).seq == 6  # another process may have added rows


def test_audit_rows_are_listed_newest_first(log: AuditLog) -> None:
    log.append(entries(log))
    assert [row["seq"] for row in log.newest(None, limit=3)] == [4, 3, 2]
    assert [row["seq"] for row in log.newest("acme", limit=9)] == [2, 1]
    assert [row["seq"] for row in log.newest(None, kind="login", limit=9)] == [4, 1]
    assert [row["seq"] for row in log.newest(None, before=3, limit=9)] == [2, 1]
    [named] = log.newest(None, document="letter.txt", limit=9)
    assert named["seq"] == 2 and "letter" not in str(named)
    assert named["facts"] == log.document("letter.txt")


def test_a_head_that_was_never_written_is_a_problem(log: AuditLog) -> None:
    head = log.append(entries(log))
    forged = type(head)(head.seq, "0" * len(head.hash))
    assert log.verify(forged).problem
    assert log.verify(type(head)(head.seq + 1, head.hash)).problem


def test_old_rows_are_removed_and_the_rest_still_verifies(log: AuditLog) -> None:
    log.append(entries(log))
    assert log.prune(1) == 0
    removed = log.prune(-1)
    assert removed == 3  # the last one stays
    assert log.verify().problem == ""
    assert [row["seq"] for row in itertools.islice(log.rows(), 1)] == [4]


def test_audit_rows_stay_when_a_tenant_goes(log: AuditLog, store: Store) -> None:
    log.append([*entries(log), AuditEntry("answer", ANN, {"question": "Who?"})])
    assert store.accounts.staying_rows("acme") == (3, 1)
    assert store.accounts.staying_rows("zoo") == (1, 0)
    assert store.accounts.staying_rows(None) == (5, 1)
    store.maintenance.forget_tenant("acme")
    assert log.verify().problem == ""
