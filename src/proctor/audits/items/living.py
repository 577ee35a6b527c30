"""How guessable one choice is while it is written: what fixed rules and a classifier of other questions make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.audits.items.baselines import rule_baselines
from proctor.audits.items.options import OptionTable, p_above_chance, right_options
from proctor.core import Item, generator
from proctor.metrics import chance_of
from proctor.stats import Estimate, Resampling, mean_interval

ALWAYS = ("longest-option", "most-question-words", "nearest-to-question")
"""Rules of length and overlap, which are told whenever they pick the right option."""

MOST_BESIDE = 300
"""As many other questions are looked at, drawn by seed: the answer comes while somebody types."""

_LEAST_GROUPS, _LEAST_ITEMS = 3, 12
_REFITS = 25
_LEVEL = 0.05


@dataclass(frozen=True)
class RuleCue:
    """A fixed rule that picks the right option of the question, and how often it is right on the other questions."""

    name: str
    label: str
    others: Estimate
    above_chance: bool


@dataclass(frozen=True)
class TextCues:
    """What a question gives away to someone who does not look. `rules` pick its right option, those that are right more
    often than chance on the other questions first, and of these the ones of length and overlap. `probability` is what a
    classifier of options, fitted on the other groups' questions, gives to the right option (the options of a question
    sum to 1), with the interval over samples of groups; None where there are fewer than 3 other groups or 12
    questions."""

    chance: float
    beside: int
    rules: tuple[RuleCue, ...]
    probability: Estimate | None

    @property
    def guessable(self) -> bool:
        """Whether a rule that works elsewhere picks the right option, or the classifier's interval is above chance."""
        low = self.probability.ci_low if self.probability is not None else None
        return any(one.above_chance for one in self.rules) or (low is not None and low > self.chance)


def text_cues(item: Item, beside: Sequence[Item], *, seed: int = 0) -> TextCues:
    """The cues of a choice with a key, beside other choices; an earlier version of it among them is left out, and no
    media are opened. Rules are one-sided tests of 5 % on the other questions, Bonferroni over the rules.

    Raises `InputError` where the key is none of the options.
    """
    others = sorted((one for one in beside if one.id != item.id and len(one.options) > 1), key=lambda one: one.id)
    order = generator(seed, "living", item.id).permutation(len(others))[:MOST_BESIDE]
    others = [others[int(place)] for place in sorted(order.tolist())]
    table = OptionTable([item, *others], seed)
    right = right_options(table)
    chance = np.array([chance_of(one) or 0.0 for one in table.items])
    return TextCues(
        chance=float(chance[0]),
        beside=len(others),
        rules=tuple(_rules(table, right, chance, seed)),
        probability=_probability(table, right, seed),
    )


def _rules(table: OptionTable, right: NDArray[np.bool_], chance: NDArray[np.float64], seed: int) -> list[RuleCue]:
    baselines = rule_baselines(table, right, 1)
    hits = np.stack([one.hits[:, 0] for one in baselines])
    groups = np.unique([one.group for one in table.items[1:]], return_inverse=True)[1] if len(table.items) > 1 else None
    enough = groups is not None and groups.max(initial=-1) + 1 >= _LEAST_GROUPS
    p = p_above_chance(hits[:, 1:], chance[1:], groups) if enough and groups is not None else np.ones(len(hits))
    found = []
    for place, one in enumerate(baselines):
        above = bool(p[place] * len(hits) < _LEVEL)
        if hits[place, 0] and (above or one.name in ALWAYS):
            values, names = hits[place, 1:].astype(float), [other.group for other in table.items[1:]]
            others = mean_interval(values, names, Resampling(draws=200, seed=seed, bounds=(0.0, 1.0)))
            found.append(RuleCue(one.name, one.label, others, above))
    return sorted(found, key=lambda one: (not one.above_chance, one.name not in ALWAYS, -(one.others.value or 0.0)))


def _probability(table: OptionTable, right: NDArray[np.bool_], seed: int) -> Estimate | None:
    """The key's probability by a logistic regression on the options' features, and its 2.5 and 97.5 % points over
    samples of the other groups."""
    own = table.items[0].group
    rows = np.array([row for row, one in enumerate(table.items) if one.group != own], dtype=np.int64)
    names = sorted({table.items[row].group for row in rows})
    if len(names) < _LEAST_GROUPS or len(rows) < _LEAST_ITEMS:
        return None
    by_group = [rows[[table.items[row].group == name for row in rows]] for name in names]
    rng = generator(seed, "living", "refits")
    draws = [rng.integers(0, len(by_group), len(by_group)) for _ in range(_REFITS)]
    fits = [
        _key_share(table, right, np.concatenate([by_group[place] for place in places]))
        for places in (np.arange(len(by_group)), *draws)
    ]
    low, high = np.quantile(fits[1:], [0.025, 0.975])
    return Estimate(fits[0], float(low), float(high), len(rows), len(names))


def _key_share(table: OptionTable, right: NDArray[np.bool_], rows: NDArray[np.int64]) -> float:
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    seen = table.present[rows]
    features, labels = table.relative[rows][seen], right[rows][seen]
    scale = features.std(axis=0)
    scale[scale == 0] = 1.0
    with threadpool_limits(limits=1):
        model = LogisticRegression(C=0.1, max_iter=500).fit(features / scale, labels)
    odds = np.exp(model.decision_function(table.relative[0][table.present[0]] / scale))
    return float(odds[right[0][table.present[0]]].sum() / odds.sum())
