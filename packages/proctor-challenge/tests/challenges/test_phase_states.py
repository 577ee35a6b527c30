"""When a phase takes submissions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection, create_engine

from proctor_challenge.schema import metadata
from proctor_challenge.settings import ChallengeSettings, Phase
from proctor_challenge.states import PhaseState, opening_of, phase_state, set_phase, was_open

FIRST, LAST = datetime(2026, 7, 15, tzinfo=UTC), datetime(2026, 9, 1, tzinfo=UTC)
BEFORE, WITHIN = datetime(2026, 7, 14, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
PHASE = Phase(name="test", questions="public/test", opens=FIRST, closes=LAST)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as opened:
        yield opened
    engine.dispose()


def test_dates_alone_open_nothing(connection: Connection) -> None:
    assert phase_state(connection, PHASE, WITHIN) is PhaseState.UNOPENED
    set_phase(connection, "test", PhaseState.OPEN, BEFORE, commitment="c", checks=["the oracle is at chance"])
    states = [phase_state(connection, PHASE, at) for at in (BEFORE, FIRST, WITHIN, LAST)]
    assert states == [PhaseState.WAITING, PhaseState.OPEN, PhaseState.OPEN, PhaseState.CLOSED]
    said = opening_of(connection, "test")
    assert said is not None
    assert (said["commitment"], said["checks"]) == ("c", ["the oracle is at chance"])


def test_what_was_closed_can_be_opened_again_and_each_time_is_kept(connection: Connection) -> None:
    for state in (PhaseState.OPEN, PhaseState.CLOSED, PhaseState.OPEN, PhaseState.CLOSED):
        set_phase(connection, "test", state, WITHIN, checks=[])
        assert phase_state(connection, PHASE, WITHIN) is state
    assert connection.exec_driver_sql("select count(*) from openings").scalar() == 4


def test_what_a_phase_hands_out_is_secret_until_it_took_submissions(connection: Connection) -> None:
    assert not was_open(connection, PHASE, LAST)
    set_phase(connection, "test", PhaseState.OPEN, BEFORE, checks=[])
    assert [was_open(connection, PHASE, at) for at in (BEFORE, FIRST, WITHIN, LAST)] == [False, True, True, True]
    set_phase(connection, "test", PhaseState.CLOSED, BEFORE, checks=[])
    assert not any(was_open(connection, PHASE, at) for at in (BEFORE, FIRST, WITHIN, LAST))
    set_phase(connection, "test", PhaseState.OPEN, WITHIN, checks=[])
    set_phase(connection, "test", PhaseState.CLOSED, LAST, checks=[])
    assert was_open(connection, PHASE, LAST)
    whenever = PHASE.model_copy(update={"opens": None})
    assert was_open(connection, whenever, BEFORE)


def test_phases_have_states_of_their_own(connection: Connection) -> None:
    settings = ChallengeSettings(
        benchmark="focus", phases=(PHASE, Phase(name="final", sealed="sealed/final", accepts=("image",)))
    )
    set_phase(connection, "final", PhaseState.OPEN, WITHIN, checks=[])
    assert {one.name: phase_state(connection, one, WITHIN) for one in settings.phases} == {
        "test": PhaseState.UNOPENED,
        "final": PhaseState.OPEN,
    }


def test_a_phase_is_opened_or_closed(connection: Connection) -> None:
    with pytest.raises(ValueError, match="waiting"):
        set_phase(connection, "test", PhaseState.WAITING, WITHIN, checks=[])
