"""A conversation whose state is damaged or gone goes on from its kept turns, and says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fakes import document
from talks import AUTH, begin, filled, reopening, say

from app.session import Session
from core.errors import OperatorError
from graph.state import state_serializer
from stores.runlog.conversations import THREADS
from stores.store import parts

LOST = "damaged or gone"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    text = "The refund API is maintained by the Payments team."
    data = filled(tmp_path / "data", lambda main: [document(main, "team.md", text)])
    with reopening(data) as opened:
        yield opened()


def begun(session: Session) -> str:
    name = begin(session)
    say(session, name, "Who maintains the refund API?")
    return name


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE checkpoints SET checkpoint = zeroblob(length(checkpoint))",
        "UPDATE checkpoints SET checkpoint = CAST(substr(checkpoint, 1, 40) AS BLOB)",
        "UPDATE checkpoints SET type = 'mshpack'",
        "UPDATE checkpoints SET type = replace(type, ':', ';')",
        "UPDATE checkpoints SET type = CAST(x'ff41' AS TEXT)",
        "UPDATE checkpoints SET metadata = 'no JSON'",
        """UPDATE checkpoints SET metadata = '{"step": "x"}'""",
        "UPDATE checkpoints SET checkpoint_id = 'x' || checkpoint_id",
        "UPDATE checkpoints SET thread_id = 'x' || thread_id",
        "DELETE FROM checkpoints",
    ],
)
def test_a_damaged_state_is_said_and_its_turns_are_known(session: Session, damage: str) -> None:
    name = begun(session)
    session.asking.close()
    with closing(sqlite3.connect(session.store.folder / THREADS)) as connection, connection:
        connection.execute(damage)
    told = say(session, name, "and where?")
    assert any(LOST in warning for warning in told.result["warnings"])
    assert told.trail[0].arguments["history"] == 1
    after = say(session, name, "and where?")  # once is enough
    assert not any(LOST in warning for warning in after.result["warnings"])
    assert after.trail[0].arguments["history"] == 2


def test_a_whole_state_says_nothing(session: Session) -> None:
    told = say(session, begun(session), "and where?")
    assert told.result["warnings"] == [] and told.trail[0].arguments["history"] == 1


@pytest.mark.parametrize("value", [None, b"bytes", "text", {"a": [1, 2.5]}])
def test_values_come_back_and_changed_ones_do_not(value: object) -> None:
    serializer = state_serializer()
    kind, data = serializer.dumps_typed(value)
    assert serializer.loads_typed((kind, data)) == value
    plain = kind.partition("+")[0]
    for other in (
        (plain, data),
        (kind, data + b"x"),
        (kind[:-1] + "g", data),
        ("x" + kind, data),
        ("x", data),
    ):
        with pytest.raises(ValueError, match="a stored state is"):
            serializer.loads_typed(other)


def test_a_saver_explains_what_it_cannot_read(session: Session) -> None:
    name = begun(session)
    with session.asking.threads.saver.cursor() as cursor:
        cursor.execute("UPDATE checkpoints SET checkpoint = x'00'")
    with pytest.raises(OperatorError, match="state of this conversation is damaged.*kept turns"):
        session.asking.threads.saver.get_tuple({"configurable": {"thread_id": name}})


def test_a_catalogue_that_is_not_written_any_more_answers_and_says_so(session: Session) -> None:
    name = begun(session)
    parts(session.store).database.condition.malformed = "a page is damaged"
    told = say(session, name, "Who maintains the refund API?")
    assert not told.result["refused"]
    assert any("does not know this turn" in warning for warning in told.result["warnings"])
    parts(session.store).database.condition.malformed = ""
    kept = session.store.runs
    assert len(kept.turns(AUTH, kept.load_conversation(AUTH, name))) == 1
