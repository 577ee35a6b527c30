"""References that were wrong and are corrected: the answers stay, what was marked by the former ones goes."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from proctor.core import Benchmark, InputError, Item
from proctor.runs import schema
from proctor.runs.schema import tags_text
from proctor.runs.store import Store


def revise_benchmark(store: Store, benchmark: Benchmark) -> int:
    """Replaces references and tags in a store by those that the data have now, and deletes the scores and derived
    facets of the items concerned; how many they are. Answers stay, and runs that were told the references, too: delete
    those.

    Raises `InputError` where anything that a system was shown differs: its answers were not given to that.
    """
    table, new = schema.items, {item.id: item for item in benchmark.items}
    with store.writing() as connection:
        known = connection.execute(
            select(schema.benchmarks).where(schema.benchmarks.c.name == benchmark.name)
        ).mappings()
        row = known.one()
        rows = connection.execute(select(table.c.id, table.c.item, table.c.body).where(table.c.benchmark == row["id"]))
        old = {one.item: (one.id, Item.model_validate_json(one.body)) for one in rows}
        changed = {}
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new or _shown(old[name][1]) != _shown(new[name]):
                found = f"another question {name!r}, or none"
                raise InputError(
                    store.shown, found=found, expected="the same ones: only references and tags may change"
                )
            if old[name][1] != new[name]:
                changed[old[name][0]] = new[name]
        for number, item in changed.items():
            values = {"body": item.model_dump_json(), "tags": tags_text(item)}
            connection.execute(update(table).where(table.c.id == number).values(values))
            connection.execute(delete(schema.scores).where(schema.scores.c.item == number))
            connection.execute(delete(schema.flags).where(schema.flags.c.item == number))
        now = {"fingerprint": benchmark.fingerprint}
        connection.execute(update(schema.benchmarks).where(schema.benchmarks.c.id == row["id"]).values(now))
    store.add_benchmark(benchmark)  # the card: levels of chance follow from the references
    return len(changed)


def _shown(item: Item) -> str:
    return item.model_dump_json(exclude={"reference", "tags"})
