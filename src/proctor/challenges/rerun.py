"""Marking again by a new version of the scorer, and what a result is tied to: no board mixes what two versions gave."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, or_, select

from proctor.challenges.marking import Figures, keep_figures, scorer_version
from proctor.challenges.queue import Leased, advance
from proctor.challenges.schema import results, scorers, submissions
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import changed_state, submission_row
from proctor.core import ProctorError

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
