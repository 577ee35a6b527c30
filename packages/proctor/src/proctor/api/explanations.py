"""Explain the gap between two scores: `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from proctor.reports import ExplanationTable
from proctor.shell import ExplainOptions, explained_sides, filled
from proctor.stats import Resampling


def explain(first: str | Path, second: str | Path, **options: Unpack[ExplainOptions]) -> ExplanationTable:
    """Explain why two scores of a benchmark differ: what differs between the two sides, and which part of the gap each
    difference explains.

    A side is a run of the `store` ("SYSTEM/CONDITION", or "SYSTEM" if it has one run), or the path of another program's log
    (Inspect, lmms-eval, VLMEvalKit, a table). Items, the treatment of missing answers, the reader of replies and the judge
    are swapped with what is stored: nobody is asked. Their parts are Shapley values with paired intervals over groups; what
    was asked (frames, prompt, settings of the model) is one part. All parts add up to the gap. Nothing is stored.

    Raises `InputError` for a side that is neither a run nor a log, and for sides without a common item, and `UsageError`
    where a scorer has to be chosen. The command is `proctor explain`.
    """
    from proctor.results import GapGame, explain_gap

    given = filled("explain", ExplainOptions, options)
    sides = explained_sides(first, second, given)
    plan = Resampling(draws=given["draws"], seed=given["seed"])
    return ExplanationTable(explain_gap(GapGame(sides.first, sides.second), plan), sides.notes)
