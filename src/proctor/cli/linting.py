"""`proctor lint`: submissions checked before they are sent, one command per benchmark; and workflow files."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import Data, Media, TrackName, reader_of
from proctor.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    from proctor.benchmarks.mediqa_eval import Check

__all__ = ["group"]


class LintFormat(StrEnum):
    """How the list is printed."""

    TABLE = "table"
    JSON = "json"


AllFindings = Annotated[
    bool, typer.Option("--all", help="Each finding on its own, not by cause.", show_default=False)
]


class Split(StrEnum):
    """The published splits of MEDIQA-EVAL."""

    VALID = "valid"
    TEST = "test"


def group() -> typer.Typer:
    """The commands below `proctor lint`."""
    lints = typer.Typer(no_args_is_help=True, help="Checks a submission and lists everything that is wrong.")
    lints.callback()(_linting)
    lints.command("mediqa-eval")(mediqa_eval)
    lints.command("focus")(focus)
    lints.command("clinicalskillqa")(clinicalskillqa)
    lints.command("workflow")(workflow)
    return lints


def _linting() -> None:
    """Checks a submission and lists everything that is wrong. Exit code 1 where something is."""


def mediqa_eval(
    submission: Annotated[
        Path,
        typer.Argument(metavar="SUBMISSION.csv", help="Scores in the task's format.", show_default=False),
    ],
    ratings: Annotated[
        Path | None,
        typer.Option(
            "--ratings", help="The answers that it must score; ratings may be empty.", show_default=False
        ),
    ] = None,
    split: Annotated[
        Split | None,
        typer.Option("--split", help="Expect the rows of this published split.", show_default=False),
    ] = None,
    any_scale: Annotated[
        bool, typer.Option("--any-scale", help="Scores need not lie between 0 and 1.")
    ] = False,
    every: AllFindings = False,
    output: Annotated[
        LintFormat, typer.Option("--format", help="For people or for programs.")
    ] = LintFormat.TABLE,
) -> None:
    """Columns, encoding, languages, dimensions, ranges, rows per dataset, repeated and opted-out rows, texts.

    Of `--ratings` only the answers are read, so a template whose `rater_id` and `value` are empty will do.

    Example: proctor lint mediqa-eval submission.csv --ratings ratings.csv
    """
    from proctor.benchmarks.mediqa_eval import answers_to_judge, check_submission

    if ratings is None and split is None:
        raise typer.BadParameter(
            "needed, or --split with the name of a published split", param_hint="--ratings"
        )
    answers = None if ratings is None else answers_to_judge(ratings)
    chosen = split.value if split else None
    check = check_submission(submission, answers, split=chosen, any_scale=any_scale)
    if output is LintFormat.JSON:
        print_json(_json(check))
    else:
        _print(check, every=every)
    raise typer.Exit(1 if check.errors else 0)


def focus(
    submission: Annotated[
        Path,
        typer.Argument(metavar="ANSWERS", help="answer.json or responses.json.", show_default=False),
    ],
    data: Data,
    track: TrackName = "",
    every: AllFindings = False,
    output: Annotated[
        LintFormat, typer.Option("--format", help="For people or for programs.")
    ] = LintFormat.TABLE,
) -> None:
    """Repeated, missing and unknown questions, answers that can't be read, too long or late ones, odd texts.

    References are not needed; what can't be checked without them is said.

    Example: proctor lint focus answer.json --data focus --track procedure
    """
    from proctor.benchmarks.focus import lint_submission
    from proctor.reports.words import clean

    found = lint_submission(submission, reader_of("focus", track).load(data))
    if output is LintFormat.JSON:
        counts = {"errors": found.errors, "warnings": len(found.findings) - found.errors}
        print_json(
            {"file": str(found.file), "answers": found.answers, "questions": found.questions}
            | counts
            | {"by_rule": found.by_rule(), "findings": [asdict(one) for one in found.findings]}
            | {"unchecked": list(found.unchecked)}
        )
    else:
        for one in [str(finding) for finding in found.findings] if every else found.causes():
            line = " ".join(clean(one).split())  # ids are text by an unknown author, too
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        of = f"{found.answers} answers to {found.questions} questions"
        for one in found.unchecked:
            console.print(f"not checked: {one}", markup=False, highlight=False, soft_wrap=True)
        rules = ", ".join(f"{rule} {count}" for rule, count in found.by_rule().items())
        console.print(
            f"{of}: {found.errors} errors, {len(found.findings) - found.errors} warnings"
            + (f" ({rules})" if rules else ""),
            markup=False,
            highlight=False,
        )
    raise typer.Exit(1 if found.errors else 0)


def clinicalskillqa(
    predictions: Annotated[
        Path,
        typer.Argument(metavar="PREDICTIONS", help="Orders and rationales.", show_default=False),
    ],
    data: Data,
    media: Media = None,
    output: Annotated[
        LintFormat, typer.Option("--format", help="For people or for programs.")
    ] = LintFormat.TABLE,
) -> None:
    """Repeated, missing and unknown instances and labels, empty orders, missing rationales; no references needed.

    Example: proctor lint clinicalskillqa predictions.jsonl --data task
    """
    from proctor.benchmarks.clinicalskillqa import lint_predictions
    from proctor.reports.words import clean

    found = lint_predictions(predictions, reader_of("clinicalskillqa").load(data, media))
    if output is LintFormat.JSON:
        print_json(found.to_json())
    else:
        for one in found.causes:
            line = " ".join(clean(str(one)).split())  # ids are text by an unknown author, too
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print(
            f"{found.answers} answers to {found.instances} instances: {found.errors} errors, "
            f"{found.warnings} warnings",
            highlight=False,
        )
    raise typer.Exit(1 if found.errors else 0)


def workflow(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="A workflow.", show_default=False)],
    output: Annotated[
        LintFormat, typer.Option("--format", help="For people or for programs.")
    ] = LintFormat.TABLE,
) -> None:
    """Form, names that nobody defines, cycles, steps that can't be reached, variants that contradict the order.

    Example: proctor lint workflow intubation.yaml
    """
    from proctor.systems.workflow import check_workflow

    wrong = [str(one) for one in check_workflow(file)]
    if output is LintFormat.JSON:
        print_json({"file": str(file), "errors": len(wrong), "findings": [*wrong]})
    else:
        for line in wrong:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print(f"{len(wrong)} errors", highlight=False)
    raise typer.Exit(1 if wrong else 0)


def _json(check: Check) -> dict[str, object]:
    return {
        "file": str(check.file),
        "errors": check.errors,
        "warnings": len(check.findings) - check.errors,
        "findings": [
            {
                "level": one.level,
                "row": one.fault.row or None,
                "column": one.fault.column or None,
                "found": one.fault.found,
                "expected": one.fault.expected,
            }
            for one in check.findings
        ],
        "counts": [asdict(one) for one in check.counts],
        "unchecked": list(check.unchecked),
    }


def _print(check: Check, *, every: bool) -> None:
    for line in [str(finding) for finding in check.findings] if every else check.causes():
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if check.counts:
        print_table(
            str(check.file),
            ["dataset", "language", ">rows", ">expected", ">repeated", ">opted out", "as many as"],
            [
                [
                    *(one.dataset, one.language, str(one.rows), str(one.expected)),
                    *(str(one.repeated), str(one.opted_out), ", ".join(one.splits)),
                ]
                for one in check.counts
            ],
        )
    for one in check.unchecked:
        console.print(f"not checked: {one}", markup=False, highlight=False, soft_wrap=True)
    warnings = len(check.findings) - check.errors
    console.print(f"{check.errors} errors, {warnings} warnings", highlight=False)
