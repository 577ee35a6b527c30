"""Opening and closing a phase, and the status of all phases.

A phase opens after its folder was checked and a cheat oracle failed to reach the references from inside a container.
The checks are recorded.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from proctor.api import results
from proctor.core import (
    Benchmark,
    ConfigurationError,
    InfrastructureError,
    InputError,
    ProblemsError,
    ProctorError,
    Table,
    count_of,
    percent,
    plain_table,
    shell_word,
)
from proctor.runs import PlanOptions, Store
from proctor.shell import plan_single
from proctor_challenge.board_pages import passed_gate, visible_boards
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import CHEAT_ORACLE, BoxError, Executor, program_image
from proctor_challenge.execution import ONE_AT_A_TIME, boxed_system
from proctor_challenge.folder import check_challenge
from proctor_challenge.receipts import write_public_key
from proctor_challenge.schema import results as figures
from proctor_challenge.schema import scorers, submissions
from proctor_challenge.scoring import scorer_fingerprint
from proctor_challenge.settings import CHALLENGE_FILE, Phase
from proctor_challenge.states import PhaseState, opening_of, phase_state, set_phase
from proctor_challenge.teams import all_teams
from proctor_web import record_change

ORACLE_QUESTIONS = 60
"""The number of questions that the oracle is asked: enough to tell it from guessing."""

_ORACLE = "cheat-oracle"
_ALPHA = 0.001  # of the test whether the oracle is better than guessing


class OracleFoundError(ProctorError):
    """The cheat oracle reached something from inside a container: the phase is not opened."""


def open_phase(
    challenge: Challenge, phase: str, executor: Executor | None, *, program: Path = CHEAT_ORACLE
) -> tuple[str, ...]:
    """Opens a phase and returns the checks that it passed, one line each. Its dates say when it takes submissions.

    `executor` runs the oracle if the phase takes images; None omits the oracle, which is recorded. Raises
    `ProblemsError` for a folder with problems, and `OracleFoundError`.
    """
    one = challenge.phase(phase)
    found = check_challenge(challenge.folder, phase)
    if found.problems:
        raise ProblemsError(challenge.folder / CHALLENGE_FILE, found.problems)
    checks = [*found.facts, "the folder is in order"]
    if "image" in one.accepts and one.hidden:
        if executor is None:
            checks.append("the cheat oracle was left out")
        else:
            checks.append(_oracle_line(challenge, one, executor, program))
    key = write_public_key(challenge.sealed)
    checks.append(f"receipts are signed with the key {key}")
    if stale := _scored_otherwise(challenge):
        checks.append(f"{stale} scored otherwise than now: workers wait for proctor challenge submission rescore")
    commitment = challenge.sealed.commitment(phase)
    _set(challenge, one, PhaseState.OPEN, checks, commitment=commitment)
    return (*checks, f"commitment {commitment}")


def _oracle_line(challenge: Challenge, phase: Phase, executor: Executor, program: Path) -> str:
    """What the cheat oracle scored. Where no container starts, the error has notes on what to do."""
    try:
        return asyncio.run(ask_oracle(challenge, phase, executor, program))
    except (ConfigurationError, InfrastructureError, BoxError) as error:
        folder, name = shell_word(challenge.folder), phase.name
        error.add_note(
            f"If {name} takes files of answers alone: accepts: [file] in {CHALLENGE_FILE} (it needs no containers then)"
        )
        error.add_note(f"What containers lack on this machine: proctor challenge check {folder} --machine")
        error.add_note(
            f"To open it without the cheating test, which is recorded: proctor challenge phase open {folder} {name} --no-oracle"
        )
        raise


def _scored_otherwise(challenge: Challenge) -> str:
    """The number of submissions with a result when the newest recorded scorer is not the present one, which a new phase
    changes too; "" when there are none."""
    with challenge.reading() as connection:
        newest = select(scorers.c.fingerprint).order_by(scorers.c.version.desc()).limit(1)
        known = connection.execute(newest).scalar()
        scored = connection.execute(select(func.count(figures.c.submission.distinct()))).scalar_one()
    return count_of(scored, "submission") if scored and known != scorer_fingerprint(challenge.sealed) else ""


def close_phase(challenge: Challenge, phase: str) -> None:
    """Closes a phase for new submissions; those in the queue are still run and scored. Raises `InputError` for a phase
    that was never opened."""
    with challenge.reading() as connection:
        if opening_of(connection, challenge.phase(phase).name) is None:
            raise InputError(f"phase {phase}", found="one that nobody has opened", expected="an open one")
    _set(challenge, challenge.phase(phase), PhaseState.CLOSED, ())


def _set(challenge: Challenge, phase: Phase, state: PhaseState, checks: Sequence[str], *, commitment: str = "") -> None:
    now = challenge.now()
    with challenge.writing() as connection:
        set_phase(connection, phase.name, state, now, commitment=commitment, checks=checks)
        record_change(connection, now, None, f"phase {state.value}", f"phase {phase.name}", {"commitment": commitment})


async def ask_oracle(challenge: Challenge, phase: Phase, executor: Executor, program: Path) -> str:
    """Runs the oracle as submissions are run, on some of the phase's questions, and reports its score. Raises
    `OracleFoundError` when it reached a file, an address or a socket, or scored better than guessing."""
    benchmark = await asyncio.to_thread(challenge.sealed.benchmark, phase.name)
    image, limits = await program_image(executor, program), challenge.settings.resources.limits()
    label = f"{challenge.label}/oracle/0"
    system = boxed_system(_ORACLE, executor, image, phase, limits, seed=challenge.draw(), label=label)
    with tempfile.TemporaryDirectory(prefix="proctor-oracle-") as folder:
        store = Store(Path(folder) / "oracle.db")
        try:
            options = PlanOptions(limit=ORACLE_QUESTIONS)
            single = plan_single(store, benchmark, system, phase.condition, options)
            async with system:
                await single.ask(ONE_AT_A_TIME)
            right, asked, chance = _score(store, benchmark)
        finally:
            store.close()
    from scipy.stats import binom

    reached = [line for line in system.report(public=True).log.splitlines() if line.startswith("reached: ")]
    if reached:
        raise OracleFoundError(f"the cheat oracle {reached[0]} ({count_of(len(reached), 'thing')} in all)"[:300])
    summary = f"the cheat oracle was right in {right} of {count_of(asked, 'question')}, guessing in {percent(chance)}"
    if asked and float(binom.sf(right - 1, asked, chance)) < _ALPHA:
        raise OracleFoundError(f"{summary}: expected no more")
    return summary


def _score(store: Store, benchmark: Benchmark) -> tuple[int, int, float]:
    """The number of right answers, the number of questions asked, and the chance level."""
    rows = results(store, benchmark.name, systems=_ORACLE, metrics="accuracy").rows
    chance = store.card(benchmark.name).chance.get("accuracy", 0.5)
    scored = [row for row in rows if row["value"] is not None]
    asked = store.count_answers(store.runs(benchmark.name)[0])[0]  # a row's n counts questions that were not asked
    right = round(sum(row["value"] * row["n"] for row in scored))
    return right, min(asked, sum(int(row["n"]) for row in scored)), chance


def phase_rows(connection: Connection, challenge: Challenge) -> list[dict[str, Any]]:
    """One row per phase: its state and dates, the number of submissions by state and of teams, how many of all teams have
    passed its gate, and how much the results may have revealed (`given_away`)."""
    rows, known = [], [int(team["id"]) for team in all_teams(connection) if team["withdrawn"] is None]
    for phase in challenge.settings.phases:
        own = submissions.c.phase == phase.name
        by_state = select(submissions.c.state, func.count()).where(own).group_by(submissions.c.state)
        teams = connection.execute(select(func.count(submissions.c.team.distinct())).where(own)).scalar_one()
        boards = visible_boards(connection, challenge.settings, phase.name, "organiser", challenge.now())
        row: dict[str, Any] = {
            "phase": phase.name,
            "state": phase_state(connection, phase, challenge.now()).value,
            "opens": phase.opens.isoformat() if phase.opens else "",
            "closes": phase.closes.isoformat() if phase.closes else "",
            "shown_from": phase.results.shown_from.isoformat() if phase.results.shown_from else "",
            "description_due": phase.description.due.isoformat() if phase.description.due else "",
            "gate": phase.gate.phase if phase.gate else "",
            "passed": [passed_gate(connection, challenge.settings, phase.name, team) for team in known].count(True),
            "registered": len(known),
            "teams": int(teams),
            "submissions": {state: int(count) for state, count in sorted(map(tuple, connection.execute(by_state)))},
            "given_away": None if boards is None else boards["given_away"],
        }
        rows.append(row)
    return rows


def status_tables(rows: Sequence[dict[str, Any]]) -> list[Table]:
    """The rows as tables: the phases, and how much those with boards may have revealed."""
    names = ("phase", "state", "opens", "closes", "shown_from", "description_due")
    shown = [name for name in names if name in names[:4] or any(row[name] for row in rows)]
    heads = (*(name.replace("_", " ") for name in shown), "gate", ">teams", "submissions")
    cells = ((*(str(row[name]) for name in shown), _gate(row), str(row["teams"])) for row in rows)
    states = (_states(row["submissions"]) for row in rows)
    phases = plain_table("Phases", heads, tuple((*own, state) for own, state in zip(cells, states, strict=True)))
    revealed = tuple(
        (
            row["phase"],
            row["given_away"]["rule"],
            line["who"],
            str(line["results"]),
            *(_points(line[rule], kind) for rule in ("all", "ladder") for kind in ("luck", "attack")),
        )
        for row in rows
        if row["given_away"]
        for line in row["given_away"]["rows"]
    )
    optimism = plain_table(
        "What the phases have given away, at least: percentage points by luck (± Monte Carlo error), and by an attack (in 95 "
        "of 100: up to)",
        ("phase", "rule", "by", ">results", ">luck", ">attack", ">luck by the ladder", ">attack by the ladder"),
        revealed,
    )
    return [phases, optimism] if revealed else [phases]


def _gate(row: dict[str, Any]) -> str:
    return f"{row['gate']}: {row['passed']} of {count_of(row['registered'], 'team')} passed" if row["gate"] else ""


def _states(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"


def _points(by_rule: dict[str, dict[str, float]] | None, kind: str) -> str:
    if by_rule is None:
        return "not known"
    found = by_rule[kind]
    more = f"({100 * found['bound']:.1f})" if "bound" in found else f"± {100 * found['error']:.1f}"
    return f"{100 * found['optimism']:.1f} {more}"
