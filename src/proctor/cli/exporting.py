"""`proctor export`: tables, a scorer's judgements, and submissions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import AllItems, BenchmarkName, Conditions, StoreUrl, Systems
from proctor.cli.output import console, note
from proctor.cli.results import DEFAULT_STORE
from proctor.core import InputError, reader_or_default, write_whole

if TYPE_CHECKING:
    from proctor.runs import Run, Store

JUDGEMENTS = "judgements"
_TABLES = ("jsonl", "csv", "parquet")


def export(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="The file to write.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl, csv or parquet; judgements: what a scorer said, as JSON Lines; one run as a submission: answer "
            "or responses (focus), submission (clinicalskillqa); a scorer's scores: submission (mediqa-eval).",
        ),
    ] = "jsonl",
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    all_items: AllItems = False,
    scorer: Annotated[
        str,
        typer.Option("--scorer", help="Whose scores, for judgements and submissions of scores.", show_default=False),
    ] = "",
    template: Annotated[
        Path | None,
        typer.Option(
            "--template", help="Only the rows of this file, in its order (submissions of scores).", show_default=False
        ),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave rows out that have no score (submissions of scores).")
    ] = False,
) -> None:
    """Export answers and scores, or a submission.

    One row per item, system, condition and metric, as JSON Lines, CSV or Parquet; what a scorer said of each answer
    (judgements); or a submission of one run, or of one scorer's scores.

    Example: proctor export rexsonovqa --store runs.db --format parquet --out rexsonovqa.parquet
    """
    from proctor.core import VALIDATORS
    from proctor.runs import Store, chosen_runs, scored_answers
    from proctor.runs import export as write

    opened = Store(store, create=False)
    if form == JUDGEMENTS:
        _export_judgements(opened, benchmark, scorer, out, tuple(systems or ()), tuple(conditions or ()))
        return
    reader = reader_or_default(benchmark)
    if form in reader.score_formats:
        runs = _scored_runs(opened, benchmark, tuple(systems or ()), tuple(conditions or ()))
        scored = scored_answers(opened, benchmark, runs, _scorer(opened, benchmark, scorer))
        count = reader.write_scores(form, scorer, scored, out, template=template, allow_missing=allow_missing)
        console.print(f"{count} rows in {out}", markup=False, highlight=False)
        return
    if form in reader.submission_formats:
        runs = chosen_runs(opened, benchmark, tuple(systems or ()), tuple(conditions or ()))
        if len(runs) != 1:
            found = ", ".join(f"{run.system} / {run.condition}" for run in runs) or "no run"
            raise InputError(None, "--system and --condition", found=found, expected="one run")
        count = reader.write_submission(form, list(opened.answers(runs[0]).values()), out)
        console.print(f"{count} answers in {out}", markup=False, highlight=False)
        if benchmark in VALIDATORS.names():
            note(f"Next: proctor validate {benchmark} {out} --data FOLDER")
        return
    if form not in _TABLES:
        own = (JUDGEMENTS, *reader.submission_formats, *reader.score_formats)
        raise typer.BadParameter(f"expected one of {', '.join((*_TABLES, *own))}", param_hint="--format")
    rows = write(
        opened,
        benchmark,
        out,
        form,  # type: ignore[arg-type]
        all_items=all_items,
        systems=tuple(systems or ()),
        conditions=tuple(conditions or ()),
    )
    console.print(f"{rows} rows in {out}", markup=False, highlight=False)


def _scorer(store: Store, benchmark: str, scorer: str) -> str:
    """The scorer, which must have scored something."""
    from proctor.runs import judges_of

    known = judges_of(store, benchmark)
    if scorer not in known:
        listed = f"one of {', '.join(known)}" if known else "a scorer, and none has scored anything"
        raise InputError(store.shown, f"--scorer of {benchmark}", found=repr(scorer), expected=listed)
    return scorer


def _scored_runs(store: Store, benchmark: str, systems: Sequence[str], conditions: Sequence[str]) -> list[Run]:
    """The runs whose answers were scored: baselines only where they are named; each system under one condition."""
    from proctor.runs import BASELINES, chosen_runs

    runs = [run for run in chosen_runs(store, benchmark, systems, conditions) if systems or run.system not in BASELINES]
    names = [run.system for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(None, "--condition", found=f"{twice} under several", expected="one condition")
    return runs


def _export_judgements(
    store: Store, benchmark: str, scorer: str, out: Path, systems: Sequence[str], conditions: Sequence[str]
) -> None:
    from proctor.runs import judgements_of

    runs = _scored_runs(store, benchmark, systems, conditions)
    found = judgements_of(store, benchmark, runs, _scorer(store, benchmark, scorer))
    lines = [json.dumps(one.to_json(), ensure_ascii=False, allow_nan=False) for one in found]
    write_whole(out, "".join(f"{line}\n" for line in lines))
    console.print(f"{len(found)} judgements in {out}", markup=False, highlight=False)
