"""The order that a shared run leaves in its store for workers on other machines (`proctor run --share`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, TypeAdapter

from proctor.shell.options import listed
from proctor.shell.systems import orders_asked_by

if TYPE_CHECKING:
    from proctor.runs import Order, Plan, Store
    from proctor.shell.run_preparation import Arranged

OF_THE_MACHINE = {
    "data", "track", "columns", "media", "cache", "cache_size", "concurrency", "store", "baselines", "on_change",
    "stop", "share", "conditions", "prompt", "batch", "max_cost", "max_time",
}  # fmt: skip
"""Options that are not sent to workers: a worker has its own, or the store knows them."""


def order_of(arranged: Arranged) -> Order | None:
    """The order for workers of a run; None if a part of the run is a Python object, which can't be sent."""
    from proctor.runs import Order, text_hash
    from proctor.systems import ModelSystem

    given: dict[str, Any] = {**arranged.options}
    models = [system for system in arranged.systems if isinstance(system, ModelSystem)]
    own = {name: one for name, one in given.items() if name not in OF_THE_MACHINE}
    own |= {"model": listed(given["model"]), "budget_s": arranged.plan.budget_s}
    own |= {"orders": orders_asked_by(arranged.options)} if models else {}  # since workers get the prompt as a file
    try:
        options = TypeAdapter(dict[str, JsonValue]).validate_python(json.loads(json.dumps(own)))
    except TypeError:
        return None
    if any(not isinstance(one, str) for one in arranged.named):
        return None
    prompts = [system.prompt for system in models]
    scorers = [(scorer.name, metric.name) for scorer in arranged.benchmark.scorers for metric in scorer.metrics]
    return Order(
        benchmark=arranged.benchmark.name,
        systems=tuple(map(str, arranged.named)),
        options=options,
        prompt=(prompts[0].name, text_hash(prompts[0].text)) if prompts else None,
        scorers=tuple(sorted(scorers)),
    )


def store_order(arranged: Arranged, store: Store, planned: Plan) -> None:
    """Store the order for workers, with prompts and the hashes of media, if workers can join the runs."""
    from proctor.media import CONDITIONS
    from proctor.runs import put_order, text_hash
    from proctor.systems import ModelSystem

    order = order_of(arranged)
    if order is None:
        return
    texts = [system.prompt.text for system in arranged.systems if isinstance(system, ModelSystem)][:1]
    seen = [CONDITIONS.get(name) for name in arranged.conditions if CONDITIONS.get(name).sees]
    left_out = {item_id for problem in planned.problems for item_id in problem.item_ids}
    if seen:
        from proctor.runs import chosen_items

        whole = replace(arranged.plan, limit=None) if any(condition.borrows for condition in seen) else arranged.plan
        items = [item for item in chosen_items(arranged.benchmark, whole) if item.id not in left_out]
        sources = sorted({medium.source for item in items for medium in item.media})
        texts.append(json.dumps({source: arranged.library.identity(source) for source in sources}, sort_keys=True))
    order = order.model_copy(
        update={"media": text_hash(texts[-1]) if seen else "", "left_out": tuple(sorted(left_out))}
    )
    put_order(store, order, texts, planned.expected)
