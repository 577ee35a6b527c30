"""A review folder becomes a site: its studies are brought up to date."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from proctor.core import InputError, ProctorError
from proctor.media import MediaLibrary
from proctor.runs import Store
from proctor.web.forms import form_named
from proctor.web.review import KEY_FILE, ReviewSite, open_store
from proctor.web.schema import accounts
from proctor.web.server import Listening
from proctor.web.settings import REVIEW_FILE, StudySettings, read_review
from proctor.web.site import signing_key
from proctor.web.sources import NewItem, items_of_file, items_of_project, items_of_runs
from proctor.web.studies import ItemTally, add_study, deal_study, disabled_people, import_items, items_without_reader


@dataclass(frozen=True)
class StudyUpdate:
    """What became of a study when its review was opened: its items, and how many assignments were made; who of its plan
    is `disabled` and gets no new work, and how many items wait because nobody reads them."""

    name: str
    items: ItemTally
    assigned: int
    disabled: tuple[str, ...]
    waiting: int


def open_review(
    folder: Path, store: str | None = None, listening: Listening | None = None
) -> tuple[ReviewSite, list[StudyUpdate]]:
    """Reads `review.yaml`, brings the studies up to date, and says what changed. Raises `InputError` for what does not
    fit, and `UsageError` for a server that would take passwords without TLS from other machines."""
    at = listening or Listening()
    settings = read_review(folder)
    tls = at.tls(settings.address, REVIEW_FILE)
    engine = open_store(folder, store)
    try:
        with engine.begin() as connection:
            roles = {row.name: row.role for row in connection.execute(select(accounts.c.name, accounts.c.role))}
        settings = read_review(folder, roles)
        review = ReviewSite(
            folder=folder,
            title=settings.title or folder.resolve().name,
            engine=engine,
            key=signing_key(folder / KEY_FILE),
            media=folder / settings.media,
            address=settings.address,
            hosts=at.names(settings.address),
            tls=tls,
        )
        known = store or str(engine.url.database)
        return review, [_up_to_date(review, study, known) for study in settings.studies]
    except ProctorError:
        engine.dispose()
        raise


def _up_to_date(review: ReviewSite, study: StudySettings, store: str) -> StudyUpdate:
    items = _items(review, study, store)
    with review.writing() as connection:
        number = add_study(connection, study, review.now())
        tally = import_items(connection, number, items, review.now())
        made = deal_study(connection, number, study.plan, review.now())
        out = disabled_people(connection, study.plan)
        return StudyUpdate(study.name, tally, made, out, items_without_reader(connection, number))


def _items(review: ReviewSite, study: StudySettings, store: str) -> list[NewItem]:
    library = MediaLibrary(review.media)
    if study.project:
        items = items_of_project(review.folder / study.project, review.media)
    elif study.benchmark:
        opened = Store(store, create=False)
        try:
            items = [item for item, _ in items_of_runs(opened, study, library)]
        finally:
            opened.close()
    else:
        items = items_of_file(review.folder / study.items, form_named(study.form), library)
    if not study.plan.gold:
        return items
    gold = items_of_file(review.folder / study.plan.gold, form_named(study.form), library, gold=True)
    both = {one.key for one in items} & {one.key for one in gold}
    if both:
        expected = "keys that no other item of the study has"
        raise InputError(review.folder / study.plan.gold, found=f"the id {min(both)!r}", expected=expected)
    return [*items, *gold]
