"""People by rule, who read a project in a review: in the browser's own steps, without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from proctor.runs import open_engine
from proctor_web import schema
from proctor_web.export import CONSENSUS_COLUMNS, consensus_rows, write_readings
from proctor_web.forms import RationaleBody
from proctor_web.progress import my_work, next_item
from proctor_web.readings import Save, adjudicate, open_item, save_draft, seal
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.sources import items_of_project
from proctor_web.studies import add_study, deal_another, deal_study, import_items
from tests.support.web_study import accounts_of, review

Said = Mapping[str, Mapping[str, Any]]
"""What a physician says other than "as recorded" and "keep", by the id of an instance or a sentence, or its end."""

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)
STUDY = "orders"


def _of(said: Said, name: str) -> Mapping[str, Any]:
    return next((other for end, other in said.items() if name.endswith(end)), {})


def order_of(body: RationaleBody, key: str, said: Said) -> dict[str, Any]:
    """The first step: the order as recorded, or what is said instead."""
    return dict(_of(said, key)) or {"order": [*body.recorded]}


def sentences_of(body: RationaleBody, said: Said) -> dict[str, Any]:
    """The second step: every sentence is kept, but for what is said."""
    return {sentence.id: dict(_of(said, sentence.id)) or {"verdict": "keep"} for sentence in body.sentences}


def read_all(connection: Connection, account: int, said: Said, study: str = STUDY) -> int:
    """Reads what waits for a physician: the order is submitted first, then the sentences; the number of items."""
    count = 0
    while (item := next_item(connection, account, study)) is not None:
        opened = open_item(connection, account, item)
        key = connection.execute(select(schema.study_items.c.key).where(schema.study_items.c.id == item)).scalar_one()
        first = order_of(opened.body, key, said) | {"ordered": True}
        save_draft(connection, account, item, Save(opened.number, 0, first), AT)
        whole = first | {"sentences": sentences_of(opened.body, said)}
        seal(connection, account, item, Save(opened.number, 1, whole), AT)
        count += 1
    return count


def settle_all(connection: Connection, account: int, said: Said, study: str = STUDY) -> list[str]:
    """Settles what waits for an adjudicator: as the page begins, changed by `said`; the keys of the items."""
    number = connection.execute(select(schema.studies.c.id).where(schema.studies.c.name == study)).scalar_one()
    keys = []
    for item in [one.item for one in my_work(connection, account, number) if one.role == "adjudicator" and one.due]:
        opened = open_item(connection, account, item)
        key = connection.execute(select(schema.study_items.c.key).where(schema.study_items.c.id == item)).scalar_one()
        payload = {"accepted": True, **_of(said, key)}
        if payload["accepted"]:
            payload["sentences"] = sentences_of(opened.body, said)
        adjudicate(connection, account, item, opened.number, payload, "as both see it", AT)
        keys.append(key)
    return keys


def export(connection: Connection, viewer: int, file: Path, study: str = STUDY) -> None:
    """The file that the project reads."""
    write_readings(consensus_rows(connection, viewer, study), CONSENSUS_COLUMNS, file, "jsonl")


@contextmanager
def project_review(
    folder: Path,
    form: str = "rationale",
    stage: str = "",
    readers: tuple[str, ...] = ("anna", "ben"),
    readings: int = 2,
) -> Iterator[tuple[Connection, dict[str, int], str]]:
    """The review of a project beside it, with its current records: the readers read, Cleo adjudicates. With the name of
    the study."""
    file = folder.with_name(f"{folder.name}.review.sqlite")
    engine = open_engine(str(file), create=False) if file.exists() else review(file)
    plan = StudyPlan(readers=readers, readings=readings, adjudicators=("cleo",))
    settings = StudySettings(name=stage or STUDY, form=form, project="p", stage=stage, plan=plan)
    items = items_of_project(folder, folder, form, stage)
    try:
        with engine.begin() as connection:
            study = add_study(connection, settings, AT)
            import_items(connection, study, items, AT)
            deal_study(connection, study, plan, AT)
            deal_another(connection, study, plan, items, AT)
            yield connection, accounts_of(connection), settings.name
    finally:
        engine.dispose()


def reviewed(folder: Path, a: Said, b: Said) -> None:
    """Both physicians read all instances of a project; what they say comes back into it."""
    with project_review(folder) as (connection, who, study):
        for name, said in (("anna", a), ("ben", b)):
            read_all(connection, who[name], said)
        export(connection, who["olga"], folder / "sources" / "consensus.jsonl", study)


def decided(folder: Path, said: Said) -> list[str]:
    """Cleo settles what waits; it comes back into the project. The keys of what waited."""
    with project_review(folder) as (connection, who, study):
        keys = settle_all(connection, who["cleo"], said)
        export(connection, who["olga"], folder / "sources" / "consensus.jsonl", study)
    return keys


Rule = Callable[[str, Any], Mapping[str, Any]]
"""A reading of an item, by its key and body."""


def annotated(folder: Path, form: str, stage: str, rules: Mapping[str, Rule], readings: int | None = None) -> int:
    """People read what waits for them of a stage of a project, by a rule each; it comes back into the project. The number
    of readings."""
    wanted = len(rules) if readings is None else readings
    count = 0
    with project_review(folder, form, stage, tuple(rules), wanted) as (connection, who, study):
        for name, rule in rules.items():
            while (item := next_item(connection, who[name], study)) is not None:
                opened = open_item(connection, who[name], item)
                query = select(schema.study_items.c.key).where(schema.study_items.c.id == item)
                key = connection.execute(query).scalar_one()
                seal(connection, who[name], item, Save(opened.number, 0, dict(rule(key, opened.body))), AT)
                count += 1
        export(connection, who["olga"], folder / "sources" / f"{stage}.jsonl", study)
    return count
