"""Orders: how shared runs are asked, kept in their store, so that a worker needs nothing else to join them.

Texts travel as parcels under the hash of their content: the order itself, a prompt, the list of media with their
hashes. What is read back is what was written, or the store is damaged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from sqlalchemy import Connection, func, select

from proctor.core import InputError, Status, first_problem
from proctor.runs import schema
from proctor.runs.store import Run, Store

_LONGEST = 50_000_000


class Order(BaseModel):
    """How runs of a benchmark are asked, as far as it does not depend on the machine.

    `systems` are names, `options` those of the run; `prompt` is the name and the hash of the prompt of models, `media`
    the hash of the list of media ("" where none is shown), `left_out` the items whose media are broken, `scorers`
    those that come with the benchmark's files, each with its metric.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    form: Literal[1] = 1
    benchmark: str
    systems: tuple[str, ...]
    options: dict[str, JsonValue]
    prompt: tuple[str, str] | None = None
    media: str = ""
    left_out: tuple[str, ...] = ()
    scorers: tuple[tuple[str, str], ...] = Field(default=())


@dataclass(frozen=True)
class OpenOrder:
    """An order with those of its runs that lack answers. `key` is its hash."""

    key: str
    order: Order
    runs: tuple[Run, ...]


def text_hash(text: str) -> str:
    """The name of a parcel."""
    return hashlib.sha256(text.encode()).hexdigest()


def place_order(store: Store, order: Order, parcels: Iterable[str], runs: Iterable[tuple[Run, int]]) -> None:
    """Keeps an order for these runs, each with how many items it has, and the texts that it names. A former order for
    the same run is replaced."""
    body = order.model_dump_json()
    texts = {text_hash(text): text for text in (body, *parcels)}
    kept, table = store.upsert(schema.parcels), schema.orders
    placed = store.upsert(table)
    new = {"parcel": placed.excluded.parcel, "items": placed.excluded["items"]}
    rows = [{"run": run.id, "parcel": text_hash(body), "items": count} for run, count in runs]
    with store.writing() as connection:
        connection.execute(
            kept.on_conflict_do_nothing(index_elements=["sha256"]),
            [{"sha256": key, "body": text} for key, text in texts.items()],
        )
        connection.execute(placed.on_conflict_do_update(index_elements=["run"], set_=new), rows)


def open_orders(store: Store, benchmarks: Collection[str] = ()) -> list[OpenOrder]:
    """The orders of which a run lacks answers, oldest run first; of these benchmarks, or of all. Raises `InputError`
    for one that can't be read."""
    runs = {run.id: run for name in benchmarks or store.benchmark_names() for run in store.runs(name)}
    found = dict[str, list[Run]]()
    with store.reading() as connection:
        for row in connection.execute(select(schema.orders).order_by(schema.orders.c.run)):
            if row.run in runs and _settled(connection, row.run) < row.items:
                found.setdefault(row.parcel, []).append(runs[row.run])
    return [OpenOrder(key, _read(store, key), tuple(own)) for key, own in found.items()]


def read_parcel(store: Store, key: str) -> str:
    """A text by its hash. Raises `InputError` where it is not there, or is another one."""
    with store.reading() as connection:
        body = connection.scalar(select(schema.parcels.c.body).where(schema.parcels.c.sha256 == key))
    if body is None or len(body) > _LONGEST or text_hash(body) != key:
        found = "nothing" if body is None else "another text"
        raise InputError(store.shown, f"parcel {key[:12]}", found=found, expected="the text with this hash")
    return str(body)


def _read(store: Store, key: str) -> Order:
    try:
        return Order.model_validate_json(read_parcel(store, key))
    except ValidationError as error:
        found, expected = str(first_problem(error)), "an order that this version reads: update Proctor"
        raise InputError(store.shown, f"order {key[:12]}", found=found, expected=expected) from error


def _settled(connection: Connection, run: int) -> int:
    table = schema.answers
    query = select(func.count()).where(table.c.run == run, table.c.status != Status.FAILED.value)
    return int(connection.execute(query).scalar_one())
