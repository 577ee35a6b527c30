"""Who reads what, in which order: drawn by seed, balanced, and the same whatever the order of items and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.core import content_hash, generator
from proctor.web.settings import StudyPlan


@dataclass(frozen=True)
class Deal:
    """The new work of each person, in the order in which it comes: keys of items by name."""

    readers: Mapping[str, tuple[str, ...]]
    adjudicators: Mapping[str, tuple[str, ...]]


def deal(
    plan: StudyPlan,
    items: Iterable[str],
    gold: Iterable[str] = (),
    load: Mapping[str, int] | None = None,
    known: Mapping[str, Sequence[str]] | None = None,
) -> Deal:
    """Deals new items (by key) to the plan's people. `load` says how much each has already (gold left out), `known`
    which gold items.

    An item is read by `readings` different readers where it belongs to the overlap, else by one; each time by those
    with the least work, of equals by a draw. So readers differ by at most one item where all began alike. Gold items
    are `gold_share` of a reader's new work, at random places, none twice.
    """
    keys = sorted(set(items), key=lambda key: _draw(plan.seed, "deal", key))
    work, cases = Counter(load or {}), Counter[str]()
    mine: dict[str, list[str]] = {name: [] for name in plan.readers}
    theirs: dict[str, list[str]] = {name: [] for name in plan.adjudicators}
    several = round(plan.overlap * len(keys))
    for number, key in enumerate(keys):
        count = plan.readings if number < several else 1
        for name in _least(plan.readers, work, (plan.seed, "reader", key))[:count]:
            mine[name].append(key)
            work[name] += 1
        if count > 1 and plan.adjudicators:
            name = _least(plan.adjudicators, cases, (plan.seed, "adjudicator", key))[0]
            theirs[name].append(key)
            cases[name] += 1
    shown = sorted(set(gold))
    ordered = {name: sorted(some, key=lambda key: _draw(plan.seed, "order", name, key)) for name, some in mine.items()}
    return Deal(
        {name: _mixed(plan, name, some, shown, (known or {}).get(name, ())) for name, some in ordered.items()},
        {
            name: tuple(sorted(some, key=lambda key: _draw(plan.seed, "order", name, key)))
            for name, some in theirs.items()
        },
    )


def _mixed(
    plan: StudyPlan, name: str, some: Sequence[str], gold: Sequence[str], known: Sequence[str]
) -> tuple[str, ...]:
    """A reader's items with gold ones at random places."""
    if not some:
        return ()
    wanted = round(len(some) * plan.gold_share / (1 - plan.gold_share))
    new = sorted((key for key in gold if key not in known), key=lambda key: _draw(plan.seed, "gold", name, key))
    chosen = new[:wanted]
    rng = generator(plan.seed, "places", name, *sorted(some)[:1])
    total = len(some) + len(chosen)
    places = set(rng.choice(total, size=len(chosen), replace=False).tolist())
    rest, extra = iter(some), iter(chosen)
    return tuple(next(extra) if place in places else next(rest) for place in range(total))


def _least(names: Sequence[str], work: Mapping[str, int], draw: tuple[int, str, str]) -> list[str]:
    return sorted(names, key=lambda name: (work.get(name, 0), _draw(*draw, name)))


def _draw(seed: int, *names: str) -> str:
    """A number of its own for each combination of names, as text; independent of all others."""
    return content_hash([seed, *names])
