"""Marking: answers of a submission that are there, or in its file, become figures, in the scorer's process alone. Marking again by a new version of the scorer, and what a result is tied to: no board mixes what two versions gave."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import JsonValue
from sqlalchemy import Connection, func, insert, or_, select

from proctor import __version__
from proctor.api import import_answers, score
from proctor.challenges.boards import AnswerSeconds, BoardFigure, BoardMaker, Figures, MadeBoard
from proctor.challenges.challenge import Challenge, SealedPart
from proctor.challenges.queue import Leased, advance
from proctor.challenges.schema import results, scorers, submissions
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import changed_state, submission_row
from proctor.core import ProctorError, content_hash, count_of, reader_of
from proctor.metrics import code_scorers
from proctor.runs import Run, Store, load_items, score_answers, status_counts
from proctor.web import utc_text

_MARKING_ROOMS = ("core", "metrics", "judges", "stats", "runs")


class ScorerFaultError(ProctorError):
    """Marking failed through no fault of the submission: it is marked again when that is repaired."""


@dataclass(frozen=True)
class Entrant:
    """A submission as marking knows it. `upload` is its file with recorded answers; None where its answers are in the
    store. `best` is the system of the team's last result that was shown."""

    system: str
    upload: Path | None = None
    suffix: str = ""
    best: str = ""


def scorer_version(connection: Connection, fingerprint: str, now: datetime, why: str = "") -> int:
    """The number of the scorer with this fingerprint (see `scorer_fingerprint`): the newest one's, or a new number."""
    newest = connection.execute(select(scorers).order_by(scorers.c.version.desc()).limit(1)).mappings().first()
    if newest is not None and newest["fingerprint"] == fingerprint:
        return int(newest["version"])
    version = 1 if newest is None else int(newest["version"]) + 1
    row = {"version": version, "at": utc_text(now), "fingerprint": fingerprint, "why": why}
    connection.execute(insert(scorers).values(row))
    return version


def scorer_fingerprint(sealed: SealedPart) -> str:
    """A hash of all that figures depend on: code, judge, and of each phase what `SealedPart.marking_hash` says. Dates,
    quotas and who sees what may change without a new version."""
    phases = [sealed.marking_hash(one.name) for one in sealed.settings.phases]
    judge = None if sealed.settings.judge is None else sealed.settings.judge.model_dump(mode="json")
    known: JsonValue = {"code": _code_hash(sealed.settings.benchmark), "judge": judge, "phases": [*phases]}
    return content_hash(known)


@cache
def _code_hash(benchmark: str) -> str:
    """A hash of the rooms that mark, and of the benchmark's own package."""
    own = Path(inspect.getfile(type(reader_of(benchmark)))).parent
    room = Path(__file__).parents[1]
    digest = hashlib.sha256(__version__.encode())
    for folder in (own, *(room / name for name in _MARKING_ROOMS)):
        for file in sorted(one for one in folder.rglob("*") if one.suffix in {".py", ".j2", ".json", ".yaml"}):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def keep_figures(connection: Connection, leased: Leased, version: int, figures: Figures, now: datetime) -> None:
    """Keeps what came of marking, in the transaction that moves the submission to `scored`."""
    row = {"submission": leased.submission, "scorer": version, "figures": figures.model_dump(mode="json")}
    connection.execute(insert(results).values(row | {"at": utc_text(now)}))


def best_shown(connection: Connection, leased: Leased) -> str:
    """The system of the team's last result before this submission that the team was told; "" where there is none."""
    version = connection.execute(select(func.max(scorers.c.version))).scalar()
    mine = (submissions.c.team == leased.team, submissions.c.phase == leased.phase)
    query = (
        select(submissions.c.number, results.c.figures)
        .join(results, results.c.submission == submissions.c.id)
        .where(*mine, submissions.c.number < leased.number, results.c.scorer == version)
        .order_by(submissions.c.number.desc())
    )
    shown = (row.number for row in connection.execute(query) if row.figures["shown"])
    number = next(shown, None)
    return "" if number is None else f"{leased.team_name}#{number}"


def mark(challenge: Challenge, leased: Leased) -> Figures:
    """Marks a leased submission. Marking it again gives the same figures; what a judge said is kept and not asked
    again. Raises `ScorerFaultError` where a judge gives no verdict, or the code that marks fails."""
    upload = challenge.uploads / leased.upload if leased.kind == "file" else None
    with challenge.reading() as connection:
        best = best_shown(connection, leased)
    entrant = Entrant(leased.system, upload, leased.suffix, best)
    return mark_entrant(challenge.sealed, leased.phase, entrant)


def mark_entrant(sealed: SealedPart, phase: str, entrant: Entrant) -> Figures:
    """The same for who has the sealed part."""
    try:
        with sealed.store(phase) as store:
            _bring_baselines(sealed, store, phase)
            run = _brought(sealed, store, phase, entrant)
            _score(sealed, store, phase, run)
            return _figures(sealed, store, run, phase, entrant)
    except ScorerFaultError:
        raise
    except ProctorError as error:
        raise ScorerFaultError(f"{entrant.system}: {error}") from error


def board_maker(sealed: SealedPart, store: Store, phase: str) -> BoardMaker:
    """Makes the boards of a phase, with those baselines that have answers there."""
    known = tuple(one.name for one in sealed.settings.baselines if phase in one.answers)
    benchmark, one = sealed.benchmark(phase).name, sealed.settings.phase(phase)
    return BoardMaker(store, benchmark, one, sealed.settings.ranking, known)


def _bring_baselines(sealed: SealedPart, store: Store, phase: str) -> None:
    """The baselines' answers into the store, once, and marked by the code as it is now."""
    known = _known_runs(sealed, store, phase)
    for one in sealed.settings.baselines:
        file = sealed.answer_file(one.name, phase)
        if file is not None:
            run = known.get(one.name) or _imported(sealed, store, phase, one.name, file)
            _score(sealed, store, phase, run)


def _brought(sealed: SealedPart, store: Store, phase: str, entrant: Entrant) -> Run:
    if entrant.upload is not None:
        with _named(entrant.upload, entrant.suffix) as file:
            return _imported(sealed, store, phase, entrant.system, file)
    known = _known_runs(sealed, store, phase)
    if entrant.system not in known:
        raise ScorerFaultError(f"{entrant.system}: found no answers, expected those of its run")
    return known[entrant.system]


def _known_runs(sealed: SealedPart, store: Store, phase: str) -> dict[str, Run]:
    benchmark, condition = sealed.benchmark(phase).name, sealed.settings.phase(phase).condition
    runs = store.runs(benchmark) if benchmark in store.benchmark_names() else []
    return {run.system: run for run in runs if run.condition == condition}


def _imported(sealed: SealedPart, store: Store, phase: str, name: str, file: Path) -> Run:
    condition = sealed.settings.phase(phase).condition
    return import_answers(sealed.benchmark(phase), file, name=name, condition=condition, store=store).runs[0]


@contextmanager
def _named(upload: Path, suffix: str) -> Iterator[Path]:
    """The upload under a name that ends as its file did, for readers that go by it."""
    if not suffix:
        yield upload
        return
    with tempfile.TemporaryDirectory(prefix="proctor-marking-") as folder:
        link = Path(folder) / f"answers{suffix}"
        link.symlink_to(upload.resolve())
        yield link


def _score(sealed: SealedPart, store: Store, phase: str, run: Run) -> None:
    """Scores by the code as it is now, and by the judge what code can't mark."""
    for scorer in code_scorers(sealed.benchmark(phase)):
        asyncio.run(score_answers(store, [run], scorer))
    _judge(sealed, store, run)


def _judge(sealed: SealedPart, store: Store, run: Run) -> None:
    choice = sealed.settings.judge
    if choice is None:
        return
    more: dict[str, Any] = {"base_url": choice.base_url} if choice.base_url else {}
    found = score(
        store,
        run.benchmark,
        judge=choice.name,
        model=choice.models,
        systems=(run.system,),
        conditions=(run.condition,),
        **more,
    )
    if found.tally is not None and found.tally.left:
        left = count_of(found.tally.left, "answer")
        raise ScorerFaultError(f"{run.system}: found {left} without a verdict, expected none")


def _figures(sealed: SealedPart, store: Store, run: Run, phase: str, entrant: Entrant) -> Figures:
    maker = board_maker(sealed, store, phase)
    made = maker.made((run.system,), quick=True)
    shown = True
    if maker.phase.results.rule == "ladder" and entrant.best:
        lead = maker.lead(run.system, entrant.best)
        shown = lead.ci_low is not None and lead.ci_low > 0
    items = load_items(store, store.card(run.benchmark))
    counts = {name: count for name, count in status_counts(store, run, items).items() if count}
    boards = tuple(_figure(one, run.system) for one in made)
    return Figures(boards=boards, statuses=counts, seconds=_seconds(store, run, entrant), shown=shown)


def _figure(board: MadeBoard, system: str) -> BoardFigure:
    row, below = board.row(system), board.row(system).get("below_line")
    mean = row["mean"] if row["mean"] is not None else row.get("mean_if_wrong")
    return BoardFigure(
        name=board.name,
        title=board.title,
        mean=mean,
        low=row["low"],
        high=row["high"],
        questions=board.facts["questions"],
        groups=board.facts.get("groups"),
        above=None if below is None else not below,
        higher_is_better=board.facts.get("higher_is_better", True),
    )


def _seconds(store: Store, run: Run, entrant: Entrant) -> AnswerSeconds | None:
    timings = [one.timing.model_s for one in store.answers(run).values() if one.timing is not None]
    taken = [one for one in timings if one is not None]
    if not taken:
        return None
    median, p95 = np.quantile(taken, (0.5, 0.95))
    measured = entrant.upload is None
    return AnswerSeconds(answers=len(taken), median=median, p95=p95, longest=max(taken), measured=measured)


_S = SubmissionState


class ScorerChangedError(ProctorError):
    """What marks now is not what marked before: the organiser has to say that all is marked again."""


def known_scorer(connection: Connection, fingerprint: str, now: datetime) -> int:
    """The version that marks by this fingerprint, the first one where there is none yet. Raises `ScorerChangedError`
    where the newest has another: a program that was updated does not mix its results with those of before."""
    newest = select(scorers.c.version, scorers.c.fingerprint).order_by(scorers.c.version.desc()).limit(1)
    known = connection.execute(newest).first()
    if known is not None and known.fingerprint != fingerprint:
        raise ScorerChangedError(
            f"found a scorer that is not version {known.version}, by which results were marked; expected the same, or "
            "proctor challenge rerun, which marks all again"
        )
    return scorer_version(connection, fingerprint, now)


def keep_result(connection: Connection, leased: Leased, figures: Figures, fingerprint: str, now: datetime) -> int:
    """Ends a lease with a result: the state, the counters and the row of `results` in one transaction; the version of
    the scorer. The same again changes nothing. Raises `StaleError` where the lease is another's, and
    `ScorerChangedError`."""
    version = known_scorer(connection, fingerprint, now)
    row = submission_row(connection, leased.submission)
    if (row["state"], row["fence"]) != (_S.SCORED.value, leased.fence):
        advance(connection, leased, _S.SCORED, now)
        keep_figures(connection, leased, version, figures, now)
    return version


def rerun_all(connection: Connection, fingerprint: str, why: str, now: datetime) -> tuple[int, int]:
    """Says that answers are marked by this scorer from now on: all that failed to be marked, or has no result by it,
    waits to be marked, without a question asked again. The scorer's version, and how many wait. Results of former
    versions stay, and boards are as before until all are marked."""
    version = scorer_version(connection, fingerprint, now, why)
    marked = select(results.c.submission).where(results.c.scorer == version)
    table = submissions.c
    unmarked = (table.state == _S.SCORED.value) & table.id.not_in(marked)
    due = select(submissions).where(or_(table.state == _S.SCORER_FAULT.value, unmarked))
    rows = connection.execute(due.order_by(table.team, table.phase, table.id).with_for_update()).mappings().all()
    for one in rows:
        changed_state(connection, one, _S.SCORING, now=now, reason="rerun", requeued=0)
    return version, len(rows)
