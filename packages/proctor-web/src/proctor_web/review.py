"""A review: its site, and its work for the shell.

Tables for the shell show what an organiser may see: nothing of an item that somebody has still to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Required, TypedDict, Unpack

import yaml
from sqlalchemy import Connection, select

from proctor.core import (
    Cell,
    InputError,
    Metric,
    ProctorError,
    Table,
    number,
    one_of,
    output_file,
    percent,
    plain_table,
    write_whole,
)
from proctor.media import MediaLibrary
from proctor.results import LabelSample, draw_sample, sampled_runs, write_sample
from proctor.runs import Store
from proctor_web.accounts import account_row
from proctor_web.agreement import StudyAgreement, agreement_tables, study_agreement
from proctor_web.export import ROWS, datasheet_section, preferences, scores_into_store, write_readings
from proctor_web.forms import RatedDimension, form_named
from proctor_web.progress import study_progress
from proctor_web.schema import accounts, one_connection, studies
from proctor_web.settings import REVIEW_FILE, StudyPlan, StudySettings, open_store, read_review, review_store
from proctor_web.sheets import SheetTally, read_sheet, write_sheet
from proctor_web.site import Listening, Site, signing_key
from proctor_web.sources import NewItem, items_of_file, items_of_project, items_of_runs
from proctor_web.studies import (
    ItemTally,
    ReassignmentTally,
    add_study,
    deal_another,
    deal_study,
    disabled_people,
    import_items,
    items_without_reader,
    lock_study,
    reassign,
)

if TYPE_CHECKING:
    from fastapi import FastAPI

KEY_FILE = "review.key"
SAMPLE_FILE = "sample.json"
SAMPLE_STUDY = "labels"
_MOST_LEVELS = 11
EXPORTS = (*ROWS, "datasheet")


@dataclass(frozen=True, kw_only=True)
class ReviewSite(Site):
    """The site of a folder with `review.yaml`. Its media are below the folder `media`."""

    slow_modules = ("sklearn.linear_model",)  # for the guessability of questions

    media: Path

    def mount(self, app: FastAPI) -> None:
        """Adds the pages of work and of organisers, exports, and the media of items."""
        from proctor_web.routes import media, organise, work
        from proctor_web.video import ItemMedia

        app.state.item_media = ItemMedia(MediaLibrary(self.media))
        for module in (media, organise, work):
            app.include_router(module.router)


# -- opening a review


@dataclass(frozen=True)
class StudyUpdate:
    """The changes of a study when its review was opened: its items, and the number of new assignments; people of its
    plan who are `disabled` and get no new work, and the number of items that wait for a reader. With a `fault` (what is
    wrong with its items) it was left as it is."""

    name: str
    items: ItemTally
    assigned: int
    disabled: tuple[str, ...]
    waiting: int
    fault: str = ""


def open_review(
    folder: Path, store: str | None = None, listening: Listening | None = None, *, to_serve: bool = False
) -> tuple[ReviewSite, list[StudyUpdate]]:
    """Reads `review.yaml`, updates the studies, and returns the site and what changed. A review that is opened
    `to_serve` also opens when items of a study that it has already can't be read: that study stays as it is.

    Raises `InputError` for invalid settings or items, and `UsageError` for a server that would accept passwords from
    other machines without TLS.
    """
    at = listening or Listening()
    address = read_review(folder).address
    tls = at.tls(address, REVIEW_FILE)
    location = review_store(folder, store)
    engine = open_store(location)
    try:
        with engine.begin() as connection:
            roles = {row.name: row.role for row in connection.execute(select(accounts.c.name, accounts.c.role))}
        settings = read_review(folder, roles)
        site = ReviewSite(
            folder=folder,
            title=settings.title or folder.resolve().name,
            engine=engine,
            key=signing_key(folder / KEY_FILE),
            media=folder / settings.media,
            address=address,
            hosts=at.names(address),
            tls=tls,
        )
        return site, [
            _update_study(site, study, location.text, position, keeps=to_serve)
            for position, study in enumerate(settings.studies)
        ]
    except ProctorError:
        engine.dispose()
        raise


def _update_study(site: ReviewSite, study: StudySettings, store: str, position: int, *, keeps: bool) -> StudyUpdate:
    try:
        items = _items(site, study, store)
    except ProctorError as error:
        with site.reading() as connection:
            progress = study_progress(connection, study.name) if keeps else None
        if progress is None:
            raise
        return StudyUpdate(study.name, ItemTally(0, 0, progress.items, 0), 0, (), 0, str(error))
    with site.writing() as connection:
        lock_study(connection, study.name)
        study_id = add_study(connection, study, site.now(), position)
        tally = import_items(connection, study_id, items, site.now())
        assigned = deal_study(connection, study_id, study.plan, site.now())
        assigned += deal_another(connection, study_id, study.plan, items, site.now())
        disabled = disabled_people(connection, study.plan)
        return StudyUpdate(study.name, tally, assigned, disabled, items_without_reader(connection, study_id))


def _items(site: ReviewSite, study: StudySettings, store: str) -> list[NewItem]:
    library, form = MediaLibrary(site.media), form_named(study.form)
    if study.project:
        items = items_of_project(site.folder / study.project, site.media, study.form, study.stage)
    elif study.benchmark:
        with closing(Store(store, create=False)) as opened:
            items = [item for item, _ in items_of_runs(opened, study, library)]
    else:
        items = items_of_file(site.folder / study.items, form, library)
    if not study.plan.gold:
        return items
    gold_file = site.folder / study.plan.gold
    gold = items_of_file(gold_file, form, library, gold=True)
    both = {item.key for item in items} & {new_item.key for new_item in gold}
    if both:
        expected = "keys that no other item of the study has"
        raise InputError(gold_file, found=f"the id {min(both)!r}", expected=expected)
    return [*items, *gold]


# -- commands


def _opened(folder: Path, store: str | None, *, reading: bool = True) -> AbstractContextManager[Connection]:
    return one_connection(open_store(review_store(folder, store), create=False), reading=reading)


def _named_files(folder: Path) -> list[Path]:
    """The files of items that a review's settings name."""
    return [folder / one for study in read_review(folder).studies for one in (study.items, study.plan.gold) if one]


def _organiser(connection: Connection) -> int:
    query = select(accounts.c.id).where(accounts.c.role == "organiser", accounts.c.disabled.is_(None))
    found = connection.execute(query.order_by(accounts.c.id)).scalar()
    if found is None:
        expected = "one, who may see what is submitted (proctor serve users add DIR NAME --role organiser)"
        raise InputError("organiser", found="no account", expected=expected)
    return int(found)


def _account(connection: Connection, name: str) -> int:
    found = account_row(connection, name)
    if found is None:
        names = list(connection.execute(select(accounts.c.name)).scalars())
        raise InputError("person", found=repr(name)[:80], expected=one_of(names, name))
    return int(found["id"])


def _check_study(connection: Connection, study: str) -> None:
    names = list(connection.execute(select(studies.c.name)).scalars())
    if study not in names:
        raise InputError("study", found=repr(study)[:80], expected=one_of(names, study))


def progress_tables(folder: Path, store: str | None = None) -> list[Table]:
    """The progress of all studies, and of the people in each."""
    with _opened(folder, store) as connection:
        names = connection.execute(select(studies.c.name).order_by(studies.c.id)).scalars()
        every = [one for name in names.all() if (one := study_progress(connection, name)) is not None]
    rows = [
        (
            progress.name,
            progress.form,
            progress.items,
            progress.gold,
            progress.complete,
            progress.agreed,
            progress.adjudicated,
            progress.differing,
        )
        for progress in every
    ]
    heads = ("study", "form", ">items", ">gold", ">read by all", ">agreed", ">adjudicated", ">waiting")
    people = [
        (progress.name, who.pseudonym, f"{who.sealed} of {who.items}", who.last[:16].replace("T", " "), who.to_settle)
        for progress in every
        for who in progress.people
    ]
    return [
        plain_table("Studies", heads, rows),
        plain_table("People", ("study", "reader", ">submitted", "last", ">to settle"), people),
    ]


def agreement_of(folder: Path, study: str, store: str | None = None) -> tuple[StudyAgreement, list[Table]]:
    """The agreement of a study's readers, as data and as tables. Raises `InputError` for an unknown study."""
    with _opened(folder, store) as connection:
        viewer = _organiser(connection)
        _check_study(connection, study)
        found = study_agreement(connection, viewer, study)
    return found, agreement_tables(found)


def export_study(folder: Path, study: str, what: str, out: Path, store: str | None = None) -> int:
    """Writes readings or the consensus (JSONL, CSV or Parquet, by the ending of `out`), or a datasheet's section
    (Markdown), and returns the number of rows or lines.

    Raises `InputError` for another ending, and where `out` is a file of the review.
    """
    output_file(out, read=_named_files(folder))
    writers: dict[str, Callable[[], int]]
    with _opened(folder, store) as connection:
        viewer = _organiser(connection)
        _check_study(connection, study)
        if what == "datasheet":
            lines = datasheet_section(connection, viewer, study)
            writers = {".md": lambda: write_whole(out, "\n".join(lines) + "\n") and len(lines)}
        else:
            read_rows, columns = ROWS[what]
            rows = read_rows(connection, viewer, study)
            writers = {
                ".jsonl": lambda: write_readings(rows, columns, out, "jsonl"),
                ".csv": lambda: write_readings(rows, columns, out, "csv"),
                ".parquet": lambda: write_readings(rows, columns, out, "parquet"),
            }
    if out.suffix not in writers:
        raise InputError(out, found=f"a file for {what} that ends in {out.suffix!r}", expected=one_of(list(writers)))
    return writers[out.suffix]()


def ratings_to_scores(folder: Path, study: str, store: str | None = None) -> tuple[int, list[Table]]:
    """Ratings: writes them into the store as scores by people, and returns their number. Pairwise choices: returns the
    strengths of the systems as tables. Raises `InputError` for a study that rates no answers of runs."""
    settings = read_review(folder).study(study)
    with (
        closing(Store(review_store(folder, store).text, create=False)) as answers,
        _opened(folder, store) as connection,
    ):
        viewer = _organiser(connection)
        if settings.form != "pairwise":
            return scores_into_store(connection, viewer, settings, answers), []
        found = preferences(connection, viewer, settings, answers)
    rows = [
        (
            system.name,
            Cell(
                percent(system.points.value),
                below=_interval(system.points.ci_low, system.points.ci_high),
                raw=system.points.value,
            ),
            Cell(number(system.strength), raw=system.strength),
        )
        for system in found.systems
    ]
    table = plain_table("Preferences (Bradley–Terry)", ("system", ">points expected", ">strength"), rows)
    problems = plain_table("What the choices leave open", ("problem",), [(problem,) for problem in found.problems])
    return 0, [table, problems] if found.problems else [table]


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{percent(low)} to {percent(high)}"


class DrawOptions(TypedDict, total=False):
    """What is drawn: see `draw_sample`."""

    judge: Required[str]
    groups: Required[int]
    by: Sequence[str]
    systems: Sequence[str]
    condition: str
    seed: int


def sample_study(
    store: str | Path,
    benchmark: str,
    out: Path,
    *,
    readers: Sequence[str] = (),
    readings: int = 1,
    **draw: Unpack[DrawOptions],
) -> LabelSample:
    """Draws groups of the answers that a judge scored, and makes the new folder `out` with the sealed sample (`sample.json`)
    and a review of these groups' answers (`review.yaml`, with the store of the answers). Each answer gets `readings` by the
    `readers`; none named: they are added to `review.yaml` later.

    Raises as `draw_sample`, and `InputError` for a folder that holds a review or a sample, and for more readings than
    readers.
    """
    for file in (out / REVIEW_FILE, out / SAMPLE_FILE):
        if file.exists():
            raise InputError(file, found="a file", expected="a new folder: a sample is drawn once")
    given = str(store)
    with closing(Store(given, create=False)) as opened:
        sample = draw_sample(opened, benchmark, **draw)
        runs = sampled_runs(opened, benchmark, sample.systems, sample.condition)
        card = opened.card(benchmark)
    study = StudySettings(
        name=SAMPLE_STUDY,
        form="rating",
        benchmark=benchmark,
        systems=tuple(sorted({run.system for run in runs})),
        condition=runs[0].condition,
        groups=sample.drawn,
        dimensions=() if card.rating is not None else _judged_dimensions(sample, card.metrics),
        plan=StudyPlan(readings=readings, readers=tuple(readers), seed=sample.seed),
    )
    out.mkdir(parents=True, exist_ok=True)
    fields = study.model_dump(mode="json", exclude_defaults=True)
    own_store = {} if "://" in given else {"store": os.path.relpath(given, out)}
    whole = {"title": f"Labels of {benchmark}", **own_store, "studies": [fields]}
    write_sample(sample, out / SAMPLE_FILE)
    write_whole(out / REVIEW_FILE, yaml.safe_dump(whole, sort_keys=False, allow_unicode=True))
    return sample


def _judged_dimensions(sample: LabelSample, metrics: Sequence[Metric]) -> tuple[RatedDimension, ...]:
    """What people rate where the benchmark has no rating scheme: the judge's metrics, at the levels that it gave and the ends
    of the scale, or at eleven levels."""
    found = []
    for metric in metrics:
        given = {value for *_, name, value in sample.anchor if name == metric.name}
        if given:
            levels = sorted(given | {metric.low, metric.high})
            if len(levels) > _MOST_LEVELS:
                levels = [
                    metric.low + (metric.high - metric.low) * step / (_MOST_LEVELS - 1) for step in range(_MOST_LEVELS)
                ]
            found.append(RatedDimension(name=metric.name, levels=tuple(levels), description=metric.label))
    return tuple(found)


def sheet_for(folder: Path, study: str, name: str, out: Path, store: str | None = None) -> int:
    """Writes a person's open items as a CSV file to fill in, and returns their number."""
    output_file(out, (".csv", ".txt"), _named_files(folder))
    with _opened(folder, store) as connection:
        account = _account(connection, name)
        _check_study(connection, study)
        return write_sheet(connection, account, study, out)


def decisions_from(folder: Path, study: str, name: str, file: Path, store: str | None = None) -> SheetTally:
    """Seals the decisions of a filled-in sheet as a person's: all of them, or none."""
    with _opened(folder, store, reading=False) as connection:
        account = _account(connection, name)
        _check_study(connection, study)
        return read_sheet(connection, account, study, file, datetime.now(UTC))


def reassign_work(folder: Path, study: str, name: str, store: str | None = None) -> ReassignmentTally:
    """Gives a person's unsealed items to the plan's other readers. Raises `InputError` for an unknown study or
    person."""
    plan = read_review(folder).study(study).plan
    with _opened(folder, store, reading=False) as connection:
        account = _account(connection, name)
        _check_study(connection, study)
        return reassign(connection, study, account, plan, datetime.now(UTC))
