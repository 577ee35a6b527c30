"""`proctor review`: studies from the shell, without the browser."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from proctor.cli.output import Output, OutputFormat, note, print_json, say, show
from proctor.cli.serve import ReviewFolder, ReviewStore, check_extra, told_update
from proctor.core import Option, count_of

StudyName = Annotated[str, Option("The study's name.", metavar="STUDY", argument=True)]
PersonName = Annotated[str, Option("The account's name.", metavar="NAME", argument=True)]


def _what() -> list[str]:
    from proctor.web import EXPORTS

    return list(EXPORTS)


def update(folder: ReviewFolder, store: ReviewStore = None) -> None:
    """Bring studies up to date and deal work.

    As `proctor serve` does when it begins: new items come in and are dealt, a changed item gets a new version.

    Example: proctor review update my-review
    """
    check_extra()
    from proctor.web import open_review

    review, updates = open_review(folder, store)
    review.engine.dispose()
    for one in updates:
        told_update(one)


def status(folder: ReviewFolder, store: ReviewStore = None, output: Output = OutputFormat.TABLE) -> None:
    """Show how far studies and people are.

    People appear by pseudonym; `proctor users list` says whose it is.

    Example: proctor review status my-review
    """
    check_extra()
    from proctor.web import progress_tables

    studies, people = progress_tables(folder, store)
    show(output, studies.records, studies, people)


def agreement(
    folder: ReviewFolder, study: StudyName, store: ReviewStore = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show how far readers agree.

    By dimension (percent, Cohen's and Fleiss' kappa, Gwet's AC1, Krippendorff's alpha; F1 of boxes and times), by
    reader with gold items, by two readers, over time, and the most disputed and slowest items. Intervals are over
    groups. Only items that all readers have sealed count.

    Example: proctor review agreement my-review questions
    """
    check_extra()
    from proctor.web import agreement_of

    found, tables = agreement_of(folder, study, store)
    if output is OutputFormat.JSON:
        print_json([asdict(found)])
        return
    blocks = tables or ("Nothing is sealed by all readers yet.",)
    show(output, tables[0].records if tables else [], *blocks)


def export(
    folder: ReviewFolder,
    study: StudyName,
    out: Annotated[Path, Option("The file: .jsonl, .csv, .parquet; .md for a datasheet.")],
    what: Annotated[str, Option("readings, consensus or datasheet.", names=_what)] = "readings",
    store: ReviewStore = None,
) -> None:
    """Export readings, or the consensus.

    Every single sealed reading with pseudonym, version and time; the consensus with who settled it and the item as it
    was settled; or a datasheet's section on the review.

    Example: proctor review export my-review questions --out readings.parquet
    """
    check_extra()
    from proctor.web import export_study

    say(f"{count_of(export_study(folder, study, what, out, store), 'row')} of {what} in {out}")


def scores(
    folder: ReviewFolder, study: StudyName, store: ReviewStore = None, output: Output = OutputFormat.TABLE
) -> None:
    """Turn ratings of answers into scores.

    Ratings become scores by human:PSEUDONYM in the review's store, so that proctor audit compares judges with them.
    Pairwise choices are shown as strengths of systems (Bradley-Terry).

    Example: proctor review scores my-review answers
    """
    check_extra()
    from proctor.web import ratings_to_scores

    count, tables = ratings_to_scores(folder, study, store)
    if tables:
        show(output, tables[0].records, *tables)
    else:
        say(f"{count_of(count, 'score')} by people")


def sheet(
    folder: ReviewFolder,
    study: StudyName,
    name: PersonName,
    out: Annotated[Path, Option("The CSV file to write.")],
    store: ReviewStore = None,
) -> None:
    """Write a person's open items as CSV.

    For who uses no browser: one item a row, with empty cells to fill in. Not for orders, boxes and moments.

    Example: proctor review sheet my-review questions anna --out anna.csv
    """
    check_extra()
    from proctor.web import sheet_for

    say(f"{count_of(sheet_for(folder, study, name, out, store), 'item')} in {out}")


def decisions(
    folder: ReviewFolder,
    study: StudyName,
    name: PersonName,
    file: Annotated[Path, Option("The filled-in CSV file.", metavar="FILE", argument=True)],
    store: ReviewStore = None,
) -> None:
    """Seal the decisions of a filled-in sheet.

    All of them or, where one row is wrong or was saved in the browser since, none. Rows without a decision are left
    open, with their comment as a draft.

    Example: proctor review decisions my-review questions anna anna.csv
    """
    check_extra()
    from proctor.web import decisions_from

    tally = decisions_from(folder, study, name, file, store)
    kept = f", {tally.comments} of them with a comment, which is kept" if tally.comments else ""
    say(f"{tally.sealed} sealed, {tally.before} sealed before, {tally.left} left open{kept}")


def reassign(folder: ReviewFolder, study: StudyName, name: PersonName, store: ReviewStore = None) -> None:
    """Give a person's open work to others.

    To the plan's readers who do not have it yet, to those with the least work first. What is sealed stays.

    Example: proctor review reassign my-review questions ben
    """
    check_extra()
    from proctor.web import reassign_work

    tally = reassign_work(folder, study, name, store)
    passed_on, gold = count_of(tally.passed_on, "item"), count_of(tally.gold, "gold item")
    say(f"{passed_on} passed on, {gold} taken away, {tally.stay} kept")
    if tally.stay:
        note("add a reader to the plan for what is kept: all others have them already")
