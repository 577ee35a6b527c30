"""Scoring: turns the answers of a submission into figures, in the scorer's process only, and ties each result to a
version of the scorer, so that no board mixes the results of two versions."""

from __future__ import annotations

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
from sqlalchemy import Connection, RowMapping, func, insert, or_, select

import proctor
from proctor import __version__
from proctor.api import import_answers, score
from proctor.core import Benchmark, ProctorError, content_hash, count_of, reader_of
from proctor.results import load_items, status_counts
from proctor.runs import Run, Store, StoreAwayError, one_at_a_time
from proctor.shell import score_by_code
from proctor_challenge.boards import AnswerSeconds, BoardFigure, BoardMaker, Figures, MadeBoard
from proctor_challenge.challenge import Challenge, SealedPart
from proctor_challenge.queue import Leased, advance
from proctor_challenge.schema import results, scorers, submissions
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import changed_state, submission_row
from proctor_web import utc_text

_SCORING_ROOMS = ("core", "metrics", "judges", "stats", "runs", "results")
_S = SubmissionState


class ScorerFaultError(ProctorError):
    """Scoring failed for a reason other than the submission. It is scored again once that is repaired."""


class ScorerChangedError(ProctorError):
    """The scorer is not the one that produced the latest results; the organiser has to confirm rescoring."""


@dataclass(frozen=True)
class Entrant:
    """A submission to score. `upload` is its file of recorded answers; None when its answers are in the store. `best` is
    the system name of the team's last result that was shown to it."""

    system: str
    upload: Path | None = None
    suffix: str = ""
    best: str = ""


def score_submission(challenge: Challenge, leased: Leased) -> Figures:
    """Scores a leased submission. Scoring it again gives the same figures; a judge's replies are cached. Raises
    `ScorerFaultError` when a judge gives no verdict, or when scoring fails."""
    upload = challenge.uploads / leased.upload if leased.kind == "file" else None
    with challenge.reading() as connection:
        best = _best_shown(connection, leased)
    return score_entrant(challenge.sealed, leased.phase, Entrant(leased.system, upload, leased.suffix, best))


def score_entrant(sealed: SealedPart, phase: str, entrant: Entrant) -> Figures:
    """Scores a submission with the sealed part alone, as `score_submission` does. Raises
    `StoreAwayError` where the store of answers can't be used for now."""
    try:
        with sealed.store(phase) as store:
            scorer = _Scorer(sealed, store, phase)
            scorer.score_baselines()
            return scorer.score(entrant)
    except (ScorerFaultError, StoreAwayError):
        raise
    except ProctorError as error:
        raise ScorerFaultError(f"{entrant.system}: {error}") from error


def board_maker(sealed: SealedPart, store: Store, phase: str) -> BoardMaker:
    """Computes the boards of a phase, with the baselines that have answers in it."""
    baselines = tuple(baseline.name for baseline in sealed.settings.baselines if phase in baseline.answers)
    rules = sealed.settings.phase(phase)
    return BoardMaker(store, sealed.benchmark(phase).name, rules, sealed.settings.ranking, baselines)


@dataclass(frozen=True)
class _Scorer:
    """Scores the answers to one phase in its opened store."""

    sealed: SealedPart
    store: Store
    phase: str

    @property
    def benchmark(self) -> Benchmark:
        return self.sealed.benchmark(self.phase)

    def score_baselines(self) -> None:
        """Imports the baselines' answers, once, and scores them by the present code."""
        runs = self._runs()
        for baseline in self.sealed.settings.baselines:
            file = self.sealed.answer_file(baseline.name, self.phase)
            if file is not None:
                self._score(runs.get(baseline.name) or self._import(baseline.name, file))

    def score(self, entrant: Entrant) -> Figures:
        """The figures of a submission."""
        if entrant.upload is not None:
            with _with_suffix(entrant.upload, entrant.suffix) as file:
                run = self._import(entrant.system, file)
        elif (known := self._runs().get(entrant.system)) is not None:
            run = known
        else:
            raise ScorerFaultError(f"{entrant.system}: found no answers, expected those of its run")
        self._score(run)
        return self._figures(run, entrant)

    def _runs(self) -> dict[str, Run]:
        benchmark, condition = self.benchmark.name, self.sealed.settings.phase(self.phase).condition
        runs = self.store.runs(benchmark) if benchmark in self.store.benchmark_names() else []
        return {run.system: run for run in runs if run.condition == condition}

    def _import(self, name: str, file: Path) -> Run:
        condition = self.sealed.settings.phase(self.phase).condition
        given: dict[str, Any] = {"name": name, "condition": condition, "submission": True}  # missing ones are wrong
        return import_answers(self.benchmark, file, store=self.store, **given).runs[0]

    def _score(self, run: Run) -> None:
        """Scores by the present code, and by the judge what code can't score."""
        score_by_code(self.store, self.benchmark, run)
        choice = self.sealed.settings.judge
        if choice is None:
            return
        own: dict[str, Any] = {"systems": (run.system,), "conditions": (run.condition,)}
        own |= {"base_url": choice.base_url} if choice.base_url else {}
        found = score(self.store, run.benchmark, judge=choice.name, model=choice.models, **own)
        if found.tally is not None and found.tally.left:
            left = count_of(found.tally.left, "answer")
            raise ScorerFaultError(f"{run.system}: found {left} without a verdict, expected none")

    def _figures(self, run: Run, entrant: Entrant) -> Figures:
        maker = board_maker(self.sealed, self.store, self.phase)
        boards = tuple(_figure(board, run.system) for board in maker.made((run.system,), quick=True))
        shown = True
        if maker.phase.results.rule == "ladder" and entrant.best:
            lead = maker.lead(run.system, entrant.best)
            shown = lead.ci_low is not None and lead.ci_low > 0
        items = load_items(self.store, self.store.card(run.benchmark))
        counts = {name: count for name, count in status_counts(self.store, run, items).items() if count}
        times = [answer.timing.model_s for answer in self.store.answers(run).values() if answer.timing is not None]
        seconds = _seconds(times, measured=entrant.upload is None) if times else None
        return Figures(boards=boards, statuses=counts, seconds=seconds, shown=shown)


@contextmanager
def _with_suffix(upload: Path, suffix: str) -> Iterator[Path]:
    """The upload under a name with the suffix of its file, for readers that depend on it."""
    if not suffix:
        yield upload
        return
    with tempfile.TemporaryDirectory(prefix="proctor-scoring-") as folder:
        link = Path(folder) / f"answers{suffix}"
        link.symlink_to(upload.resolve())
        yield link


def _figure(board: MadeBoard, system: str) -> BoardFigure:
    row = board.row(system)
    below = row.get("below_line")
    return BoardFigure(
        name=board.name,
        title=board.title,
        mean=row["mean"] if row["mean"] is not None else row.get("mean_if_wrong"),
        low=row["low"],
        high=row["high"],
        questions=board.facts["questions"],
        groups=board.facts.get("groups"),
        above=None if below is None else not below,
        higher_is_better=board.facts.get("higher_is_better", True),
        percent=board.facts.get("percent", True),
    )


def _seconds(times: list[float], *, measured: bool) -> AnswerSeconds:
    median, p95 = np.quantile(times, (0.5, 0.95))
    return AnswerSeconds(answers=len(times), median=median, p95=p95, longest=max(times), measured=measured)


def _best_shown(connection: Connection, leased: Leased) -> str:
    """The system name of the team's last result before this submission that the team was shown; "" when there is none.
    Disqualified results don't count, or they would hold back all honest ones that follow."""
    version = connection.execute(select(func.max(scorers.c.version))).scalar()
    own = (submissions.c.team == leased.team, submissions.c.phase == leased.phase)
    query = (
        select(submissions.c.number, results.c.figures)
        .join(results, results.c.submission == submissions.c.id)
        .where(*own, submissions.c.number < leased.number, results.c.scorer == version)
        .where(submissions.c.disqualified.is_(None))
        .order_by(submissions.c.number.desc())
    )
    number = next((row.number for row in connection.execute(query) if row.figures["shown"]), None)
    return "" if number is None else f"{leased.team_name}#{number}"


def scorer_fingerprint(sealed: SealedPart) -> str:
    """A hash of all that figures depend on: code, judge, and `SealedPart.scoring_hash` of each phase. Dates, quotas and
    the audience of results may change without a new version."""
    phases = [sealed.scoring_hash(phase.name) for phase in sealed.settings.phases]
    judge = None if sealed.settings.judge is None else sealed.settings.judge.model_dump(mode="json")
    known: JsonValue = {"code": _code_hash(sealed.settings.benchmark), "judge": judge, "phases": [*phases]}
    return content_hash(known)


@cache
def _code_hash(benchmark: str) -> str:
    """A hash of the rooms that score, and of the benchmark's own package."""
    own = Path(inspect.getfile(type(reader_of(benchmark)))).parent
    rooms = Path(proctor.__file__).parent
    digest = hashlib.sha256(__version__.encode())
    for folder in (own, *(rooms / name for name in _SCORING_ROOMS)):
        for file in sorted(path for path in folder.rglob("*") if path.suffix in {".py", ".j2", ".json", ".yaml"}):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _newest_scorer(connection: Connection) -> RowMapping | None:
    return connection.execute(select(scorers).order_by(scorers.c.version.desc()).limit(1)).mappings().first()


def scorer_version(connection: Connection, fingerprint: str, now: datetime, why: str = "") -> int:
    """The version of the scorer with this fingerprint (see `scorer_fingerprint`): the newest version if it has the
    fingerprint, else a new one, which is recorded."""
    newest = _newest_scorer(connection)
    if newest is None or newest["fingerprint"] != fingerprint:
        one_at_a_time(connection, "scorers")
        newest = _newest_scorer(connection)
    if newest is not None and newest["fingerprint"] == fingerprint:
        return int(newest["version"])
    version = 1 if newest is None else int(newest["version"]) + 1
    row = {"version": version, "at": utc_text(now), "fingerprint": fingerprint, "why": why}
    connection.execute(insert(scorers).values(row))
    return version


def known_scorer(connection: Connection, fingerprint: str, now: datetime) -> int:
    """The version of the scorer with this fingerprint, recorded as the first one when there is none. Raises
    `ScorerChangedError` when the newest version has another fingerprint: an updated program does not mix its results
    with earlier ones."""
    newest = _newest_scorer(connection)
    if newest is not None and newest["fingerprint"] != fingerprint:
        raise ScorerChangedError(
            f"found a scorer that is not version {newest['version']}, by which results were scored; expected the same, "
            "or proctor challenge submission rescore, which scores all again"
        )
    return scorer_version(connection, fingerprint, now)


def keep_figures(connection: Connection, leased: Leased, version: int, figures: Figures, now: datetime) -> None:
    """Stores a result, in the transaction that moves the submission to `scored`."""
    row = {"submission": leased.submission, "scorer": version, "figures": figures.model_dump(mode="json")}
    connection.execute(insert(results).values(row | {"at": utc_text(now)}))


def keep_result(connection: Connection, leased: Leased, figures: Figures, fingerprint: str, now: datetime) -> int:
    """Ends a lease with a result: state, counters and the row of `results` in one transaction; returns the version of
    the scorer. Repeating it changes nothing. Raises `ScorerChangedError`, and `StaleError` when the lease has ended."""
    version = known_scorer(connection, fingerprint, now)
    row = submission_row(connection, leased.submission)
    if (row["state"], row["fence"]) != (_S.SCORED.value, leased.fence):
        advance(connection, leased, _S.SCORED, now)
        keep_figures(connection, leased, version, figures, now)
    return version


def rerun_all(connection: Connection, fingerprint: str, why: str, now: datetime) -> tuple[int, int]:
    """Queues all submissions without a result from this scorer for rescoring; returns the scorer's version and the
    number of submissions. No question is asked again, results of former versions stay, and boards are unchanged until
    all submissions are rescored."""
    version = scorer_version(connection, fingerprint, now, why)
    scored = select(results.c.submission).where(results.c.scorer == version)
    table = submissions.c
    unscored = (table.state == _S.SCORED.value) & table.id.not_in(scored)
    due = select(submissions).where(or_(table.state == _S.SCORER_FAULT.value, unscored))
    rows = connection.execute(due.order_by(table.team, table.phase, table.id).with_for_update()).mappings().all()
    for row in rows:
        changed_state(connection, row, _S.SCORING, now=now, reason="rerun", requeued=0)
    return version, len(rows)
