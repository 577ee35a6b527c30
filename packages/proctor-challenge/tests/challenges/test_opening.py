"""Opening a phase: only a folder in order, and only where a program that cheats is as good as guessing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.core import ProblemsError
from proctor_challenge.board_pages import publish
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import ProcessExecutor
from proctor_challenge.opening import OracleFoundError, close_phase, open_phase, phase_rows
from proctor_challenge.states import PhaseState, opening_of, phase_state
from tests.support.boxes import podman
from tests.support.hosted import team
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted, scored_folder

ORACLE = """
import sys
from proctor_challenge.containers import cheat_oracle as program
roots = ({roots!r},)
class Looking(program.Oracle):
    def __init__(self):
        super().__init__(roots)
        if {quiet}:
            self.reached = []
program.Oracle, program._answers_at, program._SOCKETS = Looking, lambda host, port: False, ()
program.main()
"""


@pytest.fixture
def challenge(tmp_path: Path) -> Iterator[Challenge]:
    opened = Challenge.open(scored_folder(tmp_path / "c", videos=4), "organiser")
    yield opened
    opened.close()


def oracle(challenge: Challenge, roots: Path, *, quiet: bool = False) -> Path:
    program = challenge.folder.parent / "oracle.py"
    program.write_text(ORACLE.format(roots=str(roots), quiet=quiet))
    return program


def state(challenge: Challenge) -> PhaseState:
    with challenge.reading() as connection:
        return phase_state(connection, challenge.phase(PHASE), challenge.now())


def test_an_oracle_that_finds_nothing_opens_the_phase(challenge: Challenge) -> None:
    empty = challenge.folder.parent / "empty"
    empty.mkdir()
    checks = open_phase(challenge, PHASE, ProcessExecutor(), program=oracle(challenge, empty))
    assert state(challenge) is PhaseState.OPEN
    assert any(
        "the cheat oracle was right in" in one and "of 60 questions, guessing in 50.0 %" in one for one in checks
    )
    with challenge.reading() as connection:
        said = opening_of(connection, PHASE)
        trail = connection.exec_driver_sql("select action, subject from trail").all()
    assert said is not None
    assert said["commitment"] == challenge.sealed.commitment(PHASE)
    assert said["checks"] == list(checks[:-1])
    assert trail[-1] == ("phase open", f"phase {PHASE}")
    assert (challenge.folder / "public/receipt-key.txt").is_file()


@pytest.mark.parametrize(
    ("quiet", "told"), [(False, "the cheat oracle reached: file"), (True, "was right in 60 of 60")]
)
def test_an_oracle_that_reaches_the_references_opens_nothing(challenge: Challenge, quiet: bool, told: str) -> None:
    program = oracle(challenge, challenge.folder / "sealed" / PHASE, quiet=quiet)
    with pytest.raises(OracleFoundError, match=told):
        open_phase(challenge, PHASE, ProcessExecutor(), program=program)
    assert state(challenge) is PhaseState.UNOPENED


@pytest.mark.podman
def test_in_a_container_the_oracle_is_as_good_as_guessing(challenge: Challenge) -> None:
    checks = open_phase(challenge, PHASE, podman())
    assert any("the cheat oracle was right in" in one for one in checks)
    assert state(challenge) is PhaseState.OPEN


def test_opening_says_that_workers_will_wait_where_the_scorer_is_another(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4)
    challenge = hosted.challenge
    hosted.submit(team(challenge), 0.5)
    assert not any("rescore" in line for line in open_phase(challenge, PHASE, None))
    keys = challenge.folder / "sealed" / PHASE / "references.json"
    known = json.loads(keys.read_text())
    known[0]["answer"] = "no" if known[0]["answer"] == "yes" else "yes"
    keys.write_text(json.dumps(known))
    challenge.close()
    again = Challenge.open(challenge.folder, "organiser")
    (told,) = (line for line in open_phase(again, PHASE, None) if "rescore" in line)
    assert told == "1 submission scored otherwise than now: workers wait for proctor challenge submission rescore"
    again.close()


def test_a_folder_that_is_not_in_order_opens_nothing(challenge: Challenge) -> None:
    (challenge.folder / "sealed").chmod(0o755)
    with pytest.raises(ProblemsError, match="found mode 0755"):
        open_phase(challenge, PHASE, None)
    assert state(challenge) is PhaseState.UNOPENED


def test_the_commands(challenge: Challenge) -> None:
    folder = challenge.folder
    early = proctor("challenge", "phase", "close", folder, PHASE)
    assert (early.returncode, state(challenge)) == (1, PhaseState.UNOPENED)
    assert "found one that nobody has opened, expected an open one" in early.stderr
    opened = proctor("challenge", "phase", "open", folder, PHASE, "--no-oracle")
    assert (opened.returncode, opened.stdout) == (0, f"{PHASE} is open\n")
    assert "the cheat oracle was left out" in opened.stderr
    assert state(challenge) is PhaseState.OPEN
    assert proctor("challenge", "phase", "close", folder, PHASE).stdout == f"{PHASE} is closed\n"
    assert state(challenge) is PhaseState.CLOSED
    shown = proctor("challenge", "status", folder)
    assert (shown.returncode, "closed" in shown.stdout) == (0, True)
    unknown = proctor("challenge", "phase", "open", folder, "final", "--no-oracle")
    assert (unknown.returncode, "expected one of pre-evaluation" in unknown.stderr) == (1, True)


def test_status_counts_and_says_what_was_given_away(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    challenge = hosted.challenge
    for name in ("Alpha", "Beta"):
        hosted.submit(team(challenge, name), 0.7)
    publish(challenge, PHASE)
    with challenge.reading() as connection:
        (row,) = phase_rows(connection, challenge)
    assert (row["teams"], row["submissions"], row["state"]) == (2, {"scored": 2}, "open")
    assert [one["results"] for one in row["given_away"]["rows"]] == [1, 2]
    close_phase(challenge, PHASE)
    assert state(challenge) is PhaseState.CLOSED
    shown = proctor("challenge", "status", challenge.folder)
    assert "What the phases have given away" in shown.stdout
    assert "2 scored" in shown.stdout
    challenge.close()
