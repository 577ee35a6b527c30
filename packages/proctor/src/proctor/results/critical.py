"""Critical errors: how often systems are wrong on the items of a facet, and how often at most."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from proctor.core import ACCURACY, FailedPolicy, InputError, one_of
from proctor.results.arrays import load_items
from proctor.results.facets import named_facets
from proctor.results.results import Options, results
from proctor.runs import Store

LEVEL = 0.95
"""Of the one-sided limit."""


@dataclass(frozen=True)
class CriticalErrors:
    """The errors of one run on the items with one value of a facet. `limit` is the one-sided 95 % upper limit of the share of
    errors; None with fewer than two groups, where nothing bounds it. `effective` is the number of independent items for which
    the limit of Clopper and Pearson is the same. Items that lack an answer are errors, if `policy` is "wrong"."""

    system: str
    condition: str
    facet: str
    value: str
    errors: float
    n: int
    groups: int
    share: float
    limit: float | None
    effective: float | None
    policy: str

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)


def critical_errors(store: Store, benchmark: str, facet: str, options: Options = Options()) -> list[CriticalErrors]:
    """The errors (answers that are not right) of every chosen run on the items of `facet` (FACET, or FACET=VALUE).

    The limit is the upper end of the interval of the share at 90 % (`proctor.stats.share_ends`), so that 5 % lie beyond: no
    property of the answers makes it fall when an error is added. Without a policy, items that lack an answer are errors: a
    missing answer must not make a system look safe. Raises `InputError` for an unknown facet or value, and without scores
    that are right or wrong.
    """
    name, equals, value = facet.partition("=")
    card = store.card(benchmark)
    known = load_items(store, card, all_items=options.all_items).facet_names()
    (meant,) = named_facets(store, card, (name,), all_items=options.all_items) or (name,)
    if meant not in known:
        raise InputError(store.shown, found=f"no facet {name!r}", expected=one_of(sorted(known), name))
    policy = options.failed or FailedPolicy.WRONG
    level = 1 - 2 * (1 - LEVEL)
    asked = replace(options, by=(meant,), failed=policy, level=level, metrics=(ACCURACY.name,), two_level=False)
    found = []
    for row in results(store, benchmark, asked).rows:
        if row.value is None or (equals and row.facets[meant] != value):
            continue
        share = 1 - row.value
        limit = None if row.ci_low is None else 1 - row.ci_low
        found.append(
            CriticalErrors(
                system=row.system,
                condition=row.condition,
                facet=meant,
                value=row.facets[meant],
                errors=round(share * row.n, 9),
                n=row.n,
                groups=row.groups,
                share=share,
                limit=limit,
                effective=None if limit is None else effective_size(share, limit),
                policy=policy.value if row.policy else "",
            )
        )
    if not found:
        values = sorted({row.facets[meant] for row in results(store, benchmark, asked).rows})
        raise InputError(store.shown, found=f"no scored item with {facet}", expected=one_of(values, value))
    return found


def effective_size(share: float, limit: float) -> float | None:
    """The number of independent items whose share of errors has this one-sided upper limit (Clopper and Pearson 1934, Biometrika
    26:404); None for a limit of 1.

    >>> round(effective_size(0.0, 0.0712), 1)  # 1 − 0.05^(1/n) for 40.6 items
    40.6
    """
    from scipy.special import betainc

    if limit >= 1 or share >= 1:
        return None

    def beyond(size: float) -> float:
        return 1 - float(betainc(share * size + 1, (1 - share) * size, limit))

    low, high = 1e-6, 1.0
    while beyond(high) > 1 - LEVEL and high < 1e9:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - LEVEL else (low, middle)
    return high
