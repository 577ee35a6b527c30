"""Where systems are good and where not: capabilities alone and together, the model of all, the gap, the videos."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from proctor.runs.analysis.performance import Gathered, Row, numbers
from proctor.runs.contestants import Entry
from proctor.stats import Difference, Floats, holm, logistic, paired_difference, ratio, slice_means, sums_interval

_MOST_VALUES = 24  # a tag with more values than this is a name, not a facet
_LEAST = 10  # questions below which a stratum of two labels says too little to be listed


def capability_rows(data: Gathered) -> list[Row]:
    """Per system and label: accuracy on all questions that carry it, on those that carry it alone, and on
    those that carry each other label beside it (where there are ten or more)."""
    carriers = data.carriers(data.labels)
    single = np.add.reduce([mask.astype(int) for mask in carriers.values()]) == 1
    slices: list[tuple[str, str, NDArray[np.bool_]]] = []
    for label, mask in carriers.items():
        slices += [(label, "all", mask), (label, "alone", mask & single)]
        slices += [
            (label, f"with {other}", mask & beside)
            for other, beside in carriers.items()
            if other != label and (mask & beside).sum() >= _LEAST
        ]
    rows = []
    for entry in data.entries:
        marked = np.flatnonzero(~np.isnan(entry.right))
        found = slice_means(
            entry.right[marked],
            data.items.group[marked],
            np.stack([mask[marked] for _, _, mask in slices], axis=1),
            len(slices),
            data.plan.within(0, 1),
        )
        for (label, stratum, _), one in zip(slices, found, strict=True):
            rows.append({"system": entry.name, "label": label, "stratum": stratum} | numbers(one))
    return rows


def factor_rows(data: Gathered) -> list[Row]:
    """Per system and value of every facet (context length, distribution, leaf of the taxonomy …): its accuracy."""
    rows = []
    for factor in data.facets:
        carriers = data.carriers(factor)
        if not 1 < len(carriers) <= _MOST_VALUES:
            continue
        for entry in data.entries:
            marked = np.flatnonzero(~np.isnan(entry.right))
            found = slice_means(
                entry.right[marked],
                data.items.group[marked],
                np.stack([mask[marked] for mask in carriers.values()], axis=1),
                len(carriers),
                data.plan.within(0, 1),
            )
            rows += [
                {"system": entry.name, "factor": factor, "value_of": value} | numbers(one)
                for value, one in zip(carriers, found, strict=True)
            ]
    return rows


def regression_rows(data: Gathered) -> list[Row]:
    """Logistic regression of right answers on labels, factors and systems, all systems' answers together.

    Of each factor, and of the systems, the first value is what the others are compared with. Errors are
    clustered by group (CR2), over all systems at once.
    """
    own = _columns(data)
    marked = [np.flatnonzero(~np.isnan(entry.right)) for entry in data.entries]
    joined = {name: np.concatenate([mask[here] for here in marked]) for name, mask in own.items()}
    for number, name in enumerate(data.names[1:], start=1):
        same = [np.full(len(here), place == number) for place, here in enumerate(marked)]
        joined[f"system = {name}"] = np.concatenate(same)
    right = [entry.right[here] for entry, here in zip(data.entries, marked, strict=True)]
    groups = np.concatenate([data.items.group[here] for here in marked])
    found = logistic(np.concatenate(right), joined, groups)
    rows: list[Row] = [
        {
            "term": term.name,
            "odds_ratio": term.odds_ratio,
            "ci_low": term.ci_low,
            "ci_high": term.ci_high,
            "log_odds": term.log_odds,
            "error": term.error,
            "df": term.df,
            "p": term.p,
            "note": "",
        }
        for term in found.terms
    ]
    empty: Row = dict.fromkeys(("odds_ratio", "ci_low", "ci_high", "log_odds", "error", "df", "p"))
    rows += [{"term": name} | empty | {"note": "adds nothing to the others"} for name in found.dropped]
    rows += [{"term": name} | empty | {"note": "decided by one group alone"} for name in found.single]
    if found.problem:
        rows.append({"term": "intercept"} | empty | {"note": found.problem})
    return rows


def reference_values(data: Gathered) -> dict[str, str]:
    """What the terms of the regression are compared with: the first value of each factor, and the first system."""
    values = {factor: list(data.carriers(factor)) for factor in data.factors}
    return {factor: some[0] for factor, some in values.items() if len(some) > 1} | {"system": data.names[0]}


def _columns(data: Gathered) -> dict[str, NDArray[np.bool_]]:
    found = {f"{data.labels}: {label}": mask for label, mask in data.carriers(data.labels).items()}
    for factor in data.factors:
        for value, mask in list(data.carriers(factor).items())[1:]:
            found[f"{factor} = {value}"] = mask
    return found


def gap_rows(data: Gathered) -> list[Row]:
    """Per system and factor of two values: accuracy on the second less that on the first."""
    rows = []
    for factor in data.factors:
        carriers = data.carriers(factor)
        if len(carriers) != 2:
            continue
        (first, ones), (second, others) = carriers.items()
        for entry in data.entries:
            marked = np.flatnonzero(~np.isnan(entry.right) & (ones | others))
            right, inside, outside = entry.right[marked], ones[marked], others[marked]
            sums = np.stack([right * inside, inside, right * outside, outside], axis=1)
            one = sums_interval(sums, data.items.group[marked], _gap, plan=data.plan.within(-1.0, 1.0))
            rows.append({"system": entry.name, "factor": factor, "first": first, "second": second} | numbers(one))
    return rows


def _gap(sums: Floats) -> Floats:
    return ratio(sums[:, 2], sums[:, 3]) - ratio(sums[:, 0], sums[:, 1])


def pair_rows(data: Gathered) -> list[Row]:
    """Every pair of systems, and every system with every baseline, on the questions that both have a mark for: the
    difference of their accuracies. `family` names the comparisons that `p_holm` is adjusted over: those of systems among
    each other, and those with baselines."""
    ranked = [entry for entry in data.entries if not entry.baseline]
    baselines = [entry for entry in data.entries if entry.baseline]
    families = {
        "systems": list(combinations(ranked, 2)),
        "baselines": [(one, other) for one in ranked for other in baselines],
    }
    rows = []
    for family, pairs in families.items():
        found = [_difference(data, first, second) for first, second in pairs]
        known = [k for k, one in enumerate(found) if one.p is not None]
        adjusted = dict(zip(known, holm([found[k].p or 0.0 for k in known]).tolist(), strict=True))
        rows += [
            {
                "family": family,
                "first": first.name,
                "second": second.name,
                "n": one.n,
                "groups": one.groups,
                "difference": one.value,
                "ci_low": one.ci_low,
                "ci_high": one.ci_high,
                "p": one.p,
                "p_holm": adjusted.get(k),
                "only_first_right": one.wins,
                "only_second_right": one.losses,
            }
            for k, ((first, second), one) in enumerate(zip(pairs, found, strict=True))
        ]
    return rows


def _difference(data: Gathered, first: Entry, second: Entry) -> Difference:
    both = np.flatnonzero(~np.isnan(first.right) & ~np.isnan(second.right))
    return paired_difference(first.right[both], second.right[both], data.items.group[both], data.plan.within(0, 1))
