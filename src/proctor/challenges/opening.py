"""Opening a phase: its folder is checked, a cheat oracle tries to reach the references from inside a container, and
what was proved is written down. Closing it; and how far each phase is."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import binom
from sqlalchemy import Connection, func, select

from proctor.api import results
from proctor.challenges.challenge import Challenge
from proctor.challenges.folder import check_challenge
from proctor.challenges.marking import scorer_fingerprint
from proctor.challenges.publishing import visible_boards
from proctor.challenges.receipts import write_public_key
from proctor.challenges.schema import results as figures
from proctor.challenges.schema import scorers, submissions
from proctor.challenges.settings import CHALLENGE_FILE, Phase
from proctor.challenges.states import PhaseState, opening_of, phase_state, set_phase
from proctor.containers import CHEAT_ORACLE, BoxedSystem, Executor, program_image
from proctor.core import Benchmark, InputError, ProblemsError, ProctorError, Table, count_of, percent, plain_table
from proctor.media import Excerpts, MediaLibrary
from proctor.metrics import code_scorers
from proctor.runs import Limits, PlanOptions, Store, execute, plan
from proctor.web import record_change

ORACLE_QUESTIONS = 60
"""Questions that the oracle is asked: half of them right by luck says nothing, all of them right does."""

_ORACLE = "cheat-oracle"
_RARE = 0.001  # how seldom guessing is as good as an oracle that is refused
_NEVER = 10**9


class OracleFoundError(ProctorError):
    """The cheat oracle reached something from inside a container: the phase stays as it is."""


def open_phase(
    challenge: Challenge, phase: str, executor: Executor | None, *, program: Path = CHEAT_ORACLE
) -> tuple[str, ...]:
    """Opens a phase; what was proved before, a line each. Its dates say from when on and until when it takes
    submissions.

    `executor` runs the oracle, where the phase takes images; None leaves it out, which is written down. Raises
    `ProblemsError` for a folder that is not in order, and `OracleFoundError`.
    """
    one = challenge.phase(phase)
    found = check_challenge(challenge.folder, phase)
    if found.problems:
        raise ProblemsError(challenge.folder / CHALLENGE_FILE, found.problems)
    checks = [*found.facts, "the folder is in order"]
    if "image" in one.accepts and one.hidden:
        checks.append(_oracle(challenge, one, executor, program))
    key = write_public_key(challenge.sealed)
    checks.append(f"receipts are signed with the key {key}")
    if stale := _marked_otherwise(challenge):
        checks.append(f"{stale} marked otherwise than now: workers wait for proctor challenge rerun")
    commitment = challenge.sealed.commitment(phase)
    _set(challenge, one, PhaseState.OPEN, checks, commitment=commitment)
    return (*checks, f"commitment {commitment}")


def _marked_otherwise(challenge: Challenge) -> str:
    """How many submissions have a result by another scorer than the present one, which a new phase changes, too; ""
    where none has."""
    with challenge.reading() as connection:
        newest = select(scorers.c.fingerprint).order_by(scorers.c.version.desc()).limit(1)
        known = connection.execute(newest).scalar()
        marked = connection.execute(select(func.count(figures.c.submission.distinct()))).scalar_one()
    return count_of(marked, "submission") if marked and known != scorer_fingerprint(challenge.sealed) else ""


def close_phase(challenge: Challenge, phase: str) -> None:
    """Closes a phase: it takes nothing more; what waits is still run and marked. Raises `InputError` for one that nobody
    has opened."""
    with challenge.reading() as connection:
        if opening_of(connection, challenge.phase(phase).name) is None:
            raise InputError(f"phase {phase}", found="one that nobody has opened", expected="an open one")
    _set(challenge, challenge.phase(phase), PhaseState.CLOSED, ())


def _set(challenge: Challenge, phase: Phase, state: PhaseState, checks: Sequence[str], *, commitment: str = "") -> None:
    now = challenge.now()
    with challenge.writing() as connection:
        set_phase(connection, phase.name, state, now, commitment=commitment, checks=checks)
        record_change(connection, now, None, f"phase {state.value}", f"phase {phase.name}", {"commitment": commitment})


def _oracle(challenge: Challenge, phase: Phase, executor: Executor | None, program: Path) -> str:
    if executor is None:
        return "the cheat oracle was left out"
    return asyncio.run(ask_oracle(challenge, phase.name, executor, program))


async def ask_oracle(challenge: Challenge, phase: str, executor: Executor, program: Path = CHEAT_ORACLE) -> str:
    """Runs the oracle as a submission is run, on some of the phase's questions, and says how it scored. Raises
    `OracleFoundError` where it reached a file, an address or a socket, or is better than guessing."""
    benchmark, one = await asyncio.to_thread(challenge.sealed.benchmark, phase), challenge.phase(phase)
    system = BoxedSystem(
        _ORACLE,
        executor,
        await program_image(executor, program),
        challenge.settings.resources.limits(),
        question_s=one.budget.question_s,
        startup_s=one.budget.startup_s,
        seed=challenge.draw(),
        label=f"{challenge.label}/oracle/0",
    )
    with tempfile.TemporaryDirectory(prefix="proctor-oracle-") as folder:
        store = Store(Path(folder) / "oracle.db")
        try:
            await _asked(store, benchmark, one, system)
            right, asked, chance = _scored(store, benchmark)
        finally:
            store.close()
    reached = [line for line in system.report(public=True).log.splitlines() if line.startswith("reached: ")]
    if reached:
        raise OracleFoundError(f"the cheat oracle {reached[0]} ({count_of(len(reached), 'thing')} in all)"[:300])
    said = f"the cheat oracle was right in {right} of {count_of(asked, 'question')}, guessing in {percent(chance)}"
    if asked and float(binom.sf(right - 1, asked, chance)) < _RARE:
        raise OracleFoundError(f"{said}: expected no more")
    return said


async def _asked(store: Store, benchmark: Benchmark, phase: Phase, system: BoxedSystem) -> None:
    library = MediaLibrary(benchmark.media_root, excerpts=Excerpts(benchmark.excerpts))
    scorers, options = code_scorers(benchmark), PlanOptions(limit=ORACLE_QUESTIONS)
    planned = plan(store, benchmark, [system], [phase.condition], library, scorers=scorers, options=options)
    async with system:
        await execute(store, planned, Limits(concurrency=1, give_up_after=_NEVER))


def _scored(store: Store, benchmark: Benchmark) -> tuple[int, int, float]:
    """How many questions it answered right, of how many, and the share that guessing reaches."""
    rows = results(store, benchmark.name, systems=_ORACLE, metrics="accuracy").rows
    chance = store.card(benchmark.name).chance.get("accuracy", 0.5)
    marked = [row for row in rows if row["value"] is not None]
    asked = store.count_answers(store.runs(benchmark.name)[0])[0]  # what was not asked counts as wrong in a row's n
    right = round(sum(row["value"] * row["n"] for row in marked))
    return right, min(asked, sum(int(row["n"]) for row in marked)), chance


def phase_rows(connection: Connection, challenge: Challenge) -> list[dict[str, Any]]:
    """One row a phase: its state and dates, how many submissions there are by state, of how many teams, and what it has
    given away."""
    found = []
    for one in challenge.settings.phases:
        counted = select(submissions.c.state, func.count()).where(submissions.c.phase == one.name)
        states = {row[0]: int(row[1]) for row in connection.execute(counted.group_by(submissions.c.state))}
        having = select(func.count(submissions.c.team.distinct())).where(submissions.c.phase == one.name)
        shown = visible_boards(connection, challenge.settings, one.name, "organiser", challenge.now())
        row: dict[str, Any] = {"phase": one.name, "state": phase_state(connection, one, challenge.now()).value}
        row |= {
            "opens": one.opens.isoformat() if one.opens else "",
            "closes": one.closes.isoformat() if one.closes else "",
        }
        row |= {"teams": int(connection.execute(having).scalar_one()), "submissions": dict(sorted(states.items()))}
        found.append(row | {"given_away": None if shown is None else shown["given_away"]})
    return found


def status_tables(rows: Sequence[dict[str, Any]]) -> list[Table]:
    """The same for people: the phases, and what those with boards have given away."""
    phases = plain_table(
        "Phases",
        ("phase", "state", "opens", "closes", ">teams", "submissions"),
        tuple(
            (*(str(row[name]) for name in ("phase", "state", "opens", "closes", "teams")), _states(row["submissions"]))
            for row in rows
        ),
    )
    told = [
        (row["phase"], row["given_away"]["rule"], one)
        for row in rows
        if row["given_away"]
        for one in row["given_away"]["rows"]
    ]
    given = plain_table(
        "What the phases have given away: optimism in percentage points, ± Monte Carlo error",
        ("phase", "rule", "by", ">results", ">luck", ">attack", ">luck by the ladder", ">attack by the ladder"),
        tuple(
            (
                phase,
                rule,
                one["who"],
                str(one["results"]),
                *(_points(one[by][kind]) for by in ("all", "ladder") for kind in ("luck", "attack")),
            )
            for phase, rule, one in told
        ),
    )
    return [phases, given] if told else [phases]


def _states(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"


def _points(found: dict[str, float]) -> str:
    return f"{100 * found['optimism']:.1f} ± {100 * found['error']:.1f}"
