"""What is said where groups are too few to tell systems apart, and metrics that mark too few items to be printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proctor.core import count_of, p_value
from proctor.runs import Results
from proctor.stats import fewest_groups, least_p

_FEW_ITEMS, _MANY_METRICS = 10, 3


def few_groups_line(groups: int, level: float = 0.95) -> str:
    """That no difference can be significant with so few groups, and what it takes; empty where some can."""
    needed = fewest_groups(1 - level)
    if not groups or groups >= needed:
        return ""
    most = f"the smallest possible p is {p_value(least_p(groups))}" if groups > 1 else "there is nothing to resample"
    return (
        f"With {count_of(groups, 'group')} no difference between systems or conditions can be significant, whatever they "
        f"answer: {most}. It takes at least {needed} groups (other videos or patients; more questions on the same ones do "
        "not help)."
    )


def scarce_metrics(counts: Iterable[tuple[str, int]], headline: str) -> list[str]:
    """Metrics of fewer than ten items each, by how many items each marks (of several counts the largest), where there
    are three and more of them: they are named rather than printed. The headline is none; without it somebody chose
    metrics.

    >>> scarce_metrics([("accuracy", 5), ("iou", 1), ("tau", 2), ("f1", 1), ("bleu", 40), ("bleu", 4)], "accuracy")
    ['iou', 'tau', 'f1']
    """
    most: dict[str, int] = {}
    for name, count in counts:
        most[name] = max(count, most.get(name, 0))
    found = [name for name, count in most.items() if count < _FEW_ITEMS and name != headline]
    return found if len(found) >= _MANY_METRICS and headline in most else []


def scarce_results(found: Results) -> list[str]:
    """`scarce_metrics` of results: items of each run, over the parts that it is split into."""
    items: Counter[tuple[str, str, str]] = Counter()
    for row in found.rows:
        items[row.metric, row.system, row.condition] += row.n
    return scarce_metrics([(key[0], count) for key, count in items.items()], found.card.headline)


def scarce_line(names: Sequence[str], option: str = "--metric NAME") -> str:
    """What is said of `scarce_metrics`, with the option that shows them; empty for none."""
    return f"Of fewer than {_FEW_ITEMS} items, not shown ({option}): {', '.join(names)}" if names else ""
