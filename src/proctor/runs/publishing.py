"""What may be made public of a store: a copy that lacks what has to stay secret, from which reports are written as
from any other. What is not in the copy can't reach a page."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, insert, select

from proctor.core import NO_ANSWER, Item, generator
from proctor.runs import schema
from proctor.runs.cards import BenchmarkCard, Ruling
from proctor.runs.floor import FLOOR
from proctor.runs.store import Store
from proctor.runs.table import CODE

__all__ = ["hidden_judges", "pseudonyms_of", "public_copy"]

_CHUNK = 1000
_WITHHELD = "withheld"
_MEMBERS = re.compile(r"(?P<kind>[^\[\]]+)\[(?P<members>.*)\]", re.DOTALL)
_PUBLIC_SETTINGS = {"told_the_key", "budget_s"}

Row = dict[str, Any]
Change = Callable[[Row], Row]


def pseudonyms_of(
    store: Store, benchmark: str, baselines: Collection[str] = (), seed: int = 0
) -> dict[str, str]:
    """ "System 1", "System 2" … for every system of a benchmark but the baselines, which everybody may know. The
    numbers are drawn with the seed, so they tell nothing of names or ranks."""
    known = sorted({run.system for run in store.runs(benchmark)} - {*FLOOR, *baselines})
    order = generator(seed, "pseudonyms", benchmark).permutation(len(known))
    return {name: f"System {place + 1}" for name, place in zip(known, order.tolist(), strict=True)}


def hidden_judges(scorers: Collection[str]) -> dict[str, str]:
    """For every scorer but code a name without the names of models: "judge A", "panel[judge A, judge B]".

    >>> hidden_judges(["code", "panel[gpt, claude]", "gpt"])
    {'code': 'code', 'gpt': 'judge B', 'panel[gpt, claude]': 'panel[judge B, judge A]'}
    """
    members = {name: _members(name) for name in sorted(scorers) if name != CODE}
    judges = sorted({one for _, some in members.values() for one in some})
    letters = {name: f"judge {_letters(place)}" for place, name in enumerate(judges)}
    shown = {name: ", ".join(letters[one] for one in some) for name, (_, some) in members.items()}
    found = {name: f"{kind}[{shown[name]}]" if kind else shown[name] for name, (kind, _) in members.items()}
    return {CODE: CODE} | found


def public_copy(store: Store, benchmark: str, pseudonyms: Mapping[str, str] | None = None) -> Store:
    """A new store with one benchmark's runs, on disk for as long as the program holds it, without texts of questions, answers and reasons, without
    judgements and settings of runs; scorers have names without models (`hidden_judges`), systems those of `pseudonyms`.

    References, and answers as they were read, stay in the copy, since figures are computed from them: the tables and
    pages made from it may be published, not the copy.
    """
    shown = pseudonyms or {}
    folder = tempfile.mkdtemp(prefix="proctor-")
    copy = Store(Path(folder) / "public.db")
    weakref.finalize(copy, shutil.rmtree, folder, ignore_errors=True)
    tables = schema
    with store.reading() as source, copy.writing() as target:
        own = select(tables.benchmarks.c.id).where(tables.benchmarks.c.name == benchmark).scalar_subquery()
        items = select(tables.items.c.id).where(tables.items.c.benchmark == own)
        runs = select(tables.runs.c.id).where(tables.runs.c.benchmark == own)
        scored = select(tables.scores).where(tables.scores.c.run.in_(runs))
        names = source.scalars(scored.with_only_columns(tables.scores.c.scorer).distinct()).all()
        judges = hidden_judges(names)
        parts: list[tuple[Table, Select[Any], Change]] = [
            (
                tables.benchmarks,
                select(tables.benchmarks).where(tables.benchmarks.c.id == own),
                lambda row: _card(row, shown),
            ),
            (tables.items, select(tables.items).where(tables.items.c.benchmark == own), _item),
            (tables.flags, select(tables.flags).where(tables.flags.c.item.in_(items)), lambda row: row),
            (
                tables.runs,
                select(tables.runs).where(tables.runs.c.benchmark == own),
                lambda row: _run(row, shown),
            ),
            (tables.answers, select(tables.answers).where(tables.answers.c.run.in_(runs)), _answer),
            (tables.scores, scored, lambda row: row | {"scorer": judges[row["scorer"]], "vote_key": ""}),
        ]
        for table, query, change in parts:
            _copy(source, target, table, query, change)
    return copy


def _copy(source: Connection, target: Connection, table: Table, query: Select[Any], change: Change) -> None:
    rows = source.execute(query).mappings()
    while some := rows.fetchmany(_CHUNK):
        target.execute(insert(table), [change(dict(row)) for row in some])


def _card(row: Row, shown: Mapping[str, str]) -> Row:
    """Who is disqualified is public, the reason is not: it may quote an answer."""
    card = BenchmarkCard.model_validate(row["card"])
    rulings = tuple(
        Ruling(system=shown.get(one.system, one.system), reason="", since=one.since, lifted=one.lifted)
        for one in card.rulings
    )
    return row | {"card": card.model_copy(update={"rulings": rulings}).model_dump(mode="json")}


def _item(row: Row) -> Row:
    """Without the question; the reference stays without its reasons."""
    item = Item.model_validate_json(row["body"])
    reference = item.reference and item.reference.model_copy(update={"rationale": ""})
    bare = item.model_copy(update={"question": _WITHHELD, "reference": reference})
    return row | {"body": bare.model_dump_json()}


def _run(row: Row, shown: Mapping[str, str]) -> Row:
    settings = {name: value for name, value in row["settings"].items() if name in _PUBLIC_SETTINGS}
    return row | {"settings": settings, "system": shown.get(row["system"], row["system"]), "owner": ""}


def _answer(row: Row) -> Row:
    reason = NO_ANSWER if row["reason"] == NO_ANSWER else ""
    return row | {"text": "", "problem": "", "reason": reason, "extra": json.dumps({})}


def _members(scorer: str) -> tuple[str, list[str]]:
    """The kind of a scorer of several models with its models; no kind and itself where it is one."""
    several = _MEMBERS.fullmatch(scorer)
    return (several["kind"], several["members"].split(", ")) if several else ("", [scorer])


def _letters(place: int) -> str:
    """A, B … Z, AA, AB …"""
    text = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
