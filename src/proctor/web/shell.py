"""A review's work for the shell: studies brought up to date, how far they are, what leaves them, and work by CSV.

What is shown is what an organiser may see: nothing of an item that somebody has still to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, select

from proctor.core import Cell, InputError, Table, number, one_of, output_file, percent, plain_table, write_whole
from proctor.runs import Store
from proctor.web.agreement import StudyAgreement, study_agreement
from proctor.web.export import (
    CONSENSUS_COLUMNS,
    READING_COLUMNS,
    consensus_rows,
    datasheet_section,
    preferences,
    reading_rows,
    scores_into_store,
    write_readings,
)
from proctor.web.reassignment import ReassignmentTally, reassign
from proctor.web.review import STORE_FILE, open_store
from proctor.web.schema import accounts, studies
from proctor.web.settings import StudySettings, read_review
from proctor.web.sheets import SheetTally, read_sheet, write_sheet
from proctor.web.studies import study_progress
from proctor.web.tables import agreement_tables

WHAT = ("readings", "consensus", "datasheet")


@contextmanager
def _opened(folder: Path, store: str | None, *, reading: bool = True) -> Iterator[Connection]:
    read_review(folder)
    engine = open_store(folder, store)
    try:
        with engine.connect().execution_options(reading=reading) as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


def _named_files(folder: Path) -> list[Path]:
    """The files that the studies of a review are made of."""
    return [folder / one for study in read_review(folder).studies for one in (study.items, study.plan.gold) if one]


def _organiser(connection: Connection) -> int:
    query = select(accounts.c.id).where(accounts.c.role == "organiser", accounts.c.disabled.is_(None))
    found = connection.execute(query.order_by(accounts.c.id)).scalar()
    if found is None:
        expected = "one, who may see what is sealed (proctor users add DIR NAME --role organiser)"
        raise InputError("organiser", found="no account", expected=expected)
    return int(found)


def _known(connection: Connection, study: str) -> str:
    names = list(connection.execute(select(studies.c.name)).scalars())
    if study not in names:
        raise InputError("study", found=repr(study)[:80], expected=one_of(names, study))
    return study


def progress_tables(folder: Path, store: str | None = None) -> list[Table]:
    """How far the studies are, and the people in each."""
    with _opened(folder, store) as connection:
        names = connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars()
        every = [one for name in names.all() if (one := study_progress(connection, name)) is not None]
    rows = [
        (one.name, one.form, one.items, one.gold, one.complete, one.agreed, one.adjudicated, one.differing)
        for one in every
    ]
    heads = ("study", "form", ">items", ">gold", ">read by all", ">agreed", ">adjudicated", ">waiting")
    people = [
        (one.name, who.pseudonym, f"{who.sealed} of {who.items}", who.last[:16].replace("T", " "), who.to_settle)
        for one in every
        for who in one.people
    ]
    return [
        plain_table("Studies", heads, rows),
        plain_table("People", ("study", "reader", ">sealed", "last", ">to settle"), people),
    ]


def agreement_of(folder: Path, study: str, store: str | None = None) -> tuple[StudyAgreement, list[Table]]:
    """The agreement of a study's readers, as data and as tables. Raises `InputError` for an unknown study."""
    with _opened(folder, store) as connection:
        found = study_agreement(connection, _organiser(connection), _known(connection, study))
    return found, agreement_tables(found)


def export_study(folder: Path, study: str, what: str, out: Path, store: str | None = None) -> int:
    """Writes readings, the consensus (JSONL, CSV or Parquet, by the name of `out`) or a datasheet's section (Markdown),
    and returns the rows or lines. Raises `InputError` for another ending, and where `out` is a file of the review."""
    output_file(out, read=_named_files(folder))
    forms: dict[str, Callable[[], int]]
    with _opened(folder, store) as connection:
        viewer = _organiser(connection)
        _known(connection, study)
        if what == "datasheet":
            lines = datasheet_section(connection, viewer, study)
            forms = {".md": lambda: write_whole(out, "\n".join(lines) + "\n") and len(lines)}
        else:
            rows = (reading_rows if what == "readings" else consensus_rows)(connection, viewer, study)
            columns = READING_COLUMNS if what == "readings" else CONSENSUS_COLUMNS
            forms = {
                ".jsonl": lambda: write_readings(rows, columns, out, "jsonl"),
                ".csv": lambda: write_readings(rows, columns, out, "csv"),
                ".parquet": lambda: write_readings(rows, columns, out, "parquet"),
            }
    if out.suffix not in forms:
        raise InputError(out, found=f"a file for {what} that ends in {out.suffix!r}", expected=one_of(list(forms)))
    return forms[out.suffix]()


def ratings_to_scores(folder: Path, study: str, store: str | None = None) -> tuple[int, list[Table]]:
    """Of ratings: writes them into the store as scores by people, and returns how many. Of pairwise choices: the
    strengths of the systems, as tables. Raises `InputError` for a study that rates no answers of runs."""
    settings: StudySettings = read_review(folder).study(study)
    answers = Store(store or folder / STORE_FILE, create=False)
    try:
        with _opened(folder, store) as connection:
            viewer = _organiser(connection)
            if settings.form != "pairwise":
                return scores_into_store(connection, viewer, settings, answers), []
            found = preferences(connection, viewer, settings, answers)
    finally:
        answers.close()
    rows = [
        (
            one.name,
            Cell(percent(one.points.value), below=_span(one.points.ci_low, one.points.ci_high), raw=one.points.value),
            Cell(number(one.strength), raw=one.strength),
        )
        for one in found.systems
    ]
    table = plain_table("Preferences (Bradley–Terry)", ("system", ">points expected", ">strength"), rows)
    problems = [plain_table("What the choices leave open", ("problem",), [(one,) for one in found.problems])]
    return 0, [table, *(problems if found.problems else [])]


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{percent(low)} to {percent(high)}"


def sheet_for(folder: Path, study: str, name: str, out: Path, store: str | None = None) -> int:
    """Writes a person's open items as a CSV file to fill in, and returns how many they are."""
    output_file(out, (".csv", ".txt"), _named_files(folder))
    with _opened(folder, store) as connection:
        return write_sheet(connection, _account(connection, name), _known(connection, study), out)


def decisions_from(folder: Path, study: str, name: str, file: Path, store: str | None = None) -> SheetTally:
    """Seals the decisions of a filled-in sheet as a person's: all of them, or none."""
    with _opened(folder, store, reading=False) as connection:
        account = _account(connection, name)
        return read_sheet(connection, account, _known(connection, study), file, datetime.now(UTC))


def reassign_work(folder: Path, study: str, name: str, store: str | None = None) -> ReassignmentTally:
    """Gives what a person has not sealed to the plan's other readers. Raises `InputError` for an unknown study or
    person."""
    plan = read_review(folder).study(study).plan
    with _opened(folder, store, reading=False) as connection:
        account = _account(connection, name)
        return reassign(connection, _known(connection, study), account, plan, datetime.now(UTC))


def _account(connection: Connection, name: str) -> int:
    found = connection.execute(select(accounts.c.id).where(accounts.c.name == name)).scalar()
    if found is None:
        names = list(connection.execute(select(accounts.c.name)).scalars())
        raise InputError("person", found=repr(name)[:80], expected=one_of(names, name))
    return int(found)
