"""Explain the gap between two scores: `explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from proctor.reports import ExplanationTable
from proctor.shell import ExplainOptions, explained_gap, explained_sides, filled, gap_runs, wait_for


def explain(first: str | Path, second: str | Path, **options: Unpack[ExplainOptions]) -> ExplanationTable:
    """Explain why two scores of a benchmark differ: what differs between the two sides, and which part of the gap each
    difference explains.

    A side is a run of the `store` ("SYSTEM/CONDITION", or "SYSTEM" if it has one run), or the path of another program's log
    (Inspect, lmms-eval, VLMEvalKit, a table). Items, the treatment of missing answers, the reader of replies and the judge
    are swapped with what is stored: nobody is asked. Their parts are Shapley values with paired intervals over groups; what
    was asked (frames, prompt, settings of the model) is one part. All parts add up to the gap. Nothing is stored.

    What was asked is told apart by runs of the first side's model with some settings of the second side. `data.runs` says what
    they would ask; with `ask` they are asked and stored, and a later call goes on where it stopped. Once all are there, they
    are used by every call.

    Raises `InputError` for a side that is neither a run nor a log, and for sides without a common item, and `UsageError`
    where a scorer has to be chosen. The command is `proctor explain`.
    """
    given = filled("explain", ExplainOptions, options)
    sides = explained_sides(first, second, given)
    runs = gap_runs(sides, given)
    told = wait_for(lambda: runs.ask(given["on_change"])) if given["ask"] else []
    return ExplanationTable(explained_gap(runs), (*sides.notes, *told))
