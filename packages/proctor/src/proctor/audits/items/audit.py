"""The item audit: which questions can be answered without looking, in a benchmark or while one question is written."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.audits.items.assignment import Assignment, Together, answered_together
from proctor.audits.items.baselines import (
    BaselineComparison,
    BaselineResult,
    ModelHits,
    ModelReplies,
    SelectedBaseline,
    TextBaseline,
    answer_baselines,
    constant_share,
    facet_values,
    fold_of_groups,
    model_hits,
    random_baseline,
    rule_baselines,
)
from proctor.audits.items.classifiers import learned_baselines, once_rules
from proctor.audits.items.options import (
    OptionAudit,
    OptionTable,
    audit_options,
    p_above_chance,
    phrases_of,
    right_options,
    rows_by_group,
    words,
)
from proctor.core import OPTION_POOL, Item, count_of, generator
from proctor.core.formats import ChoiceFormat, FreeTextFormat, RatingsFormat, option_letters
from proctor.metrics import chance_of
from proctor.metrics.text import Encoder
from proctor.stats import Estimate, Resampling, linked, mean_interval


@dataclass(frozen=True)
class AnswerRecurrence:
    """The numbers of other items of the group in which an item's right answer (the right option, or the reference of a free
    text) recurs in the same words: as the right answer, as a wrong option, in the question (two words at least). Items
    without recurrence are not listed."""

    item_id: str
    as_right: int
    as_wrong: int
    in_question: int


@dataclass(frozen=True)
class FormatAudit:
    """The items of one answer format. `constant_share` is the accuracy of the best constant answer in sample (the baseline
    `majority`); `baselines` are sorted, best first; `selected` is None, with the reason in `unselected`, with too few
    groups to select on some and test on others."""

    kind: str
    n: int
    groups: int
    chance: float | None
    constant_share: float
    baselines: tuple[BaselineResult, ...]
    selected: SelectedBaseline | None
    unselected: str
    options: OptionAudit | None
    pools: OptionPools | None = None

    @property
    def best_rule(self) -> BaselineResult | None:
        """The fixed rule with the highest accuracy over all items (selected in sample: see its p)."""
        return next((baseline for baseline in self.baselines if baseline.kind == "rule"), None)


@dataclass(frozen=True)
class ItemAudit:
    """The whole audit.

    `guessable` says for every item that could be tested whether the baseline that was selected and fitted on other groups
    answers it. About a share `chance` of these is luck. No item is guessable if no baseline beat chance on the other
    groups. Items of a format with too few groups to select are missing. `left_out` gives, by answer format, the items
    that were not audited, and why.
    """

    n: int
    groups: int
    seed: int
    draws: int
    formats: tuple[FormatAudit, ...]
    repeats: tuple[AnswerRecurrence, ...]
    guessable: dict[str, bool]
    left_out: dict[str, str]

    def format(self, kind: str) -> FormatAudit | None:
        """The audit of one answer format; None without such items."""
        return next((audit for audit in self.formats if audit.kind == kind), None)

    @property
    def baseline_rows(self) -> list[dict[str, JsonValue]]:
        """A row for each baseline of each answer format."""
        return [
            {
                "format": audit.kind,
                "baseline": baseline.name,
                "kind": baseline.kind,
                "label": baseline.label,
                "n": baseline.accuracy.n,
                "groups": baseline.accuracy.groups,
                "accuracy": baseline.accuracy.value,
                "ci_low": baseline.accuracy.ci_low,
                "ci_high": baseline.accuracy.ci_high,
                "chance": baseline.chance,
                "p": baseline.p,
                "p_holm": baseline.p_holm,
            }
            for audit in self.formats
            for baseline in audit.baselines
        ]


def to_json(audit: ItemAudit) -> dict[str, JsonValue]:
    """The audit as plain JSON data with the same field names."""
    plain: dict[str, JsonValue] = json.loads(json.dumps(asdict(audit), allow_nan=False))
    return plain


def find_recurrences(items: Sequence[Item]) -> tuple[AnswerRecurrence, ...]:
    """The items, in order, whose right answer recurs in another item of the group."""
    answers = [_right_answer(item) for item in items]
    found: dict[int, AnswerRecurrence] = {}
    for rows in rows_by_group(items).values():
        right = Counter(answers[row] for row in rows if answers[row])
        sizes = {len(answer.split()) for answer in right}
        wrong = {row: _options(items[row]) - {answers[row]} for row in rows}
        asked = {row: phrases_of(items[row].question, sizes) & right.keys() for row in rows}
        offered = Counter(phrase for phrases in wrong.values() for phrase in phrases)
        mentioned = Counter(phrase for phrases in asked.values() for phrase in phrases)
        for row in rows:
            answer = answers[row]
            repeats = AnswerRecurrence(
                item_id=items[row].id,
                as_right=right[answer] - 1,
                as_wrong=offered[answer],
                in_question=mentioned[answer] - (answer in asked[row]),
            )
            if answer and (repeats.as_right or repeats.as_wrong or repeats.in_question):
                found[row] = repeats
    return tuple(found[row] for row in sorted(found))


def _right_answer(item: Item) -> str:
    """The words of the right answer; empty for formats other than choice and free text."""
    if item.reference is None or item.reference.answer is None:
        return ""
    key = item.reference.answer
    if isinstance(item.answer, ChoiceFormat):
        return _plain(item.options[option_letters(len(item.options)).index(str(key))])
    return _plain(str(key)) if isinstance(item.answer, FreeTextFormat) else ""


def _options(item: Item) -> set[str]:
    return {_plain(option) for option in item.options}


def _plain(text: str) -> str:
    return " ".join(words(text))


_MAX_VALUES = 12  # a tag with more values is a name, not a facet


def audit_items(
    items: Sequence[Item],
    *,
    seed: int = 0,
    draws: int = 2000,
    facets: Sequence[str] | None = None,
    encode: Encoder | None = None,
    models: Sequence[ModelReplies] = (),
) -> ItemAudit:
    """Audits all items by their text and references; no media are opened and no model is asked.

    Choice items: the position of the key, the length of the right option, features that distinguish it from wrong ones,
    fixed rules and classifiers. Binary, count, percentage, ordering, classes and timestamps: the most frequent answer and
    the answer to the most similar question, both learned from other groups. Free text, ratings and items without a
    reference are left out (see `ItemAudit.left_out`).

    `facets` are the tags that accuracies are split by; None takes every tag with 2 to 12 distinct values and no
    fractions. `seed` determines folds and ties; `draws` is that of the bootstrap. With `encode` rules on sentence
    embeddings are tried, too. `models` are rows of their own among the baselines of choices; they are never selected.
    Groups that share an option pool (the tag `option_pool`) are in one fold. Raises
    `InputError` for a key that is none of its item's options.
    """
    kept, left_out = _auditable(items)
    guessable: dict[str, bool] = {}
    audits = []
    for kind in dict.fromkeys(item.answer.kind for item in kept):
        of_kind = [item for item in kept if item.answer.kind == kind]
        split_by = _facets(of_kind) if facets is None else tuple(dict.fromkeys(facets))
        audit, solved = _audit_format(of_kind, split_by, draws, seed, encode, models)
        audits.append(audit)
        guessable |= solved
    return ItemAudit(
        n=len(items),
        groups=len({item.group for item in items}),
        seed=seed,
        draws=draws,
        formats=tuple(audits),
        repeats=find_recurrences([item for item in items if item.reference is not None]),
        guessable={item.id: guessable[item.id] for item in items if item.id in guessable},
        left_out=left_out,
    )


def _auditable(items: Sequence[Item]) -> tuple[list[Item], dict[str, str]]:
    kept, reasons = [], Counter[tuple[str, str]]()
    for item in items:
        if item.reference is None:
            reasons[item.answer.kind, "no reference"] += 1
        elif item.unanswerable:
            reasons[item.answer.kind, "unanswerable, so no guess is right"] += 1
        elif isinstance(item.answer, FreeTextFormat | RatingsFormat):
            reasons[item.answer.kind, "what is right is not decided by code, so no guess can be scored"] += 1
        elif isinstance(item.answer, ChoiceFormat) and len(item.options) < 2:
            reasons[item.answer.kind, "fewer than two options"] += 1
        else:
            kept.append(item)
    parts: dict[str, list[str]] = {}
    for (kind, reason), count in reasons.items():
        parts.setdefault(kind, []).append(f"{count_of(count, 'item')}: {reason}")
    return kept, {kind: "; ".join(listed) for kind, listed in parts.items()}


def _facets(items: Sequence[Item]) -> list[str]:
    found = []
    for tag in dict.fromkeys(tag for item in items for tag in item.tags):
        values = {value for item in items for value in facet_values(item.tags.get(tag))}
        fractions = any(isinstance(item.tags.get(tag), float) for item in items)
        if not fractions and 2 <= len(values) <= _MAX_VALUES:
            found.append(tag)
    return found


def _audit_format(
    items: list[Item],
    facets: Sequence[str],
    draws: int,
    seed: int,
    encode: Encoder | None,
    models: Sequence[ModelReplies],
) -> tuple[FormatAudit, dict[str, bool]]:
    fold = fold_of_groups(fold_units(items), seed)
    chances = [chance_of(item) for item in items]
    known = [chance for chance in chances if chance is not None]
    compared = BaselineComparison(items, fold, np.array(known) if len(known) == len(items) else None, draws, seed)
    baselines: list[TextBaseline] = []
    options = pools = None
    asked: list[ModelHits] = []
    if isinstance(items[0].answer, ChoiceFormat):
        table = OptionTable(items, seed, encode)
        right = right_options(table)
        options = audit_options(table, right, draws=draws, seed=seed)
        pools = option_pools(table, right, draws=draws, seed=seed)
        baselines = _choice_baselines(table, right, fold, seed)
        asked = [model_hits(table, right, replies) for replies in models]
    elif fold.max() >= 2:
        baselines = answer_baselines(items, fold)
    selected, solved = None, {}
    if fold.max() >= 1 and baselines:
        random = [] if compared.chance is None else [random_baseline(items, compared.chance, fold, seed)]
        selected, hits = compared.selected([*random, *baselines], facets)
        solved = {item.id: bool(hit) for item, hit in zip(items, hits, strict=True)}
    audit = FormatAudit(
        kind=items[0].answer.kind,
        n=len(items),
        groups=len({item.group for item in items}),
        chance=compared.mean_chance(),
        constant_share=constant_share(items),
        baselines=compared.results(baselines, asked),
        selected=selected,
        unselected="" if selected else "too few groups to choose on some and try on others",
        options=options,
        pools=pools,
    )
    return audit, solved


def _choice_baselines(
    table: OptionTable, right: NDArray[np.bool_], fold: NDArray[np.int64], seed: int
) -> list[TextBaseline]:
    folds = int(fold.max()) + 1
    assignment = Assignment(table)
    rules = [*rule_baselines(table, right, folds), *once_rules(table, right, folds, assignment)]
    return [*rules, *learned_baselines(table, right, fold, seed, assignment)] if folds >= 3 else rules


@dataclass(frozen=True)
class OptionPools:
    """The number of `pools` of groups whose right answers serve as wrong options of other items. `known` is the accuracy of
    choosing the option that is right least often in all other groups, those of the pool included; the baselines never
    know answers of the item's own pool. `together` is that of a system that knows no answer, but sees all questions at
    once (see `answered_together`); None where too few items share texts that can each be used once."""

    pools: int
    known: Estimate
    together: Together | None = None


def fold_units(items: Sequence[Item]) -> list[str]:
    """The unit of folds for each item: its group, with all groups that an option pool links."""
    labels = [
        [("group", item.group), *([("pool", item.tags[OPTION_POOL])] if OPTION_POOL in item.tags else [])]
        for item in items
    ]
    if not any(OPTION_POOL in item.tags for item in items):
        return [item.group for item in items]
    return [f"{code:06d}" for code in linked(labels)]


def option_pools(table: OptionTable, right: NDArray[np.bool_], *, draws: int, seed: int) -> OptionPools | None:
    """The leakage by option pools; None without pools."""
    pools = {str(item.tags[OPTION_POOL]) for item in table.items if OPTION_POOL in item.tags}
    if not pools:
        return None
    phrases = table.phrases
    everywhere, in_group = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for row, item in enumerate(table.items):
        of_item = {phrases[row][index] for index in np.flatnonzero(right[row])}
        everywhere.update(of_item)
        in_group[item.group].update(of_item)
    scores = np.zeros(table.present.shape)
    for row, item in enumerate(table.items):
        for index, phrase in enumerate(phrases[row]):
            scores[row, index] = in_group[item.group][phrase] - everywhere[phrase]
    groups = np.unique([item.group for item in table.items], return_inverse=True)[1]
    plan = Resampling(draws=draws, seed=seed, bounds=(0.0, 1.0))
    known = mean_interval(table.hits(scores, right).astype(np.float64), groups, plan)
    return OptionPools(len(pools), known, answered_together(table, right, seed=seed))


ALWAYS = ("longest-option", "most-question-words", "nearest-to-question")
"""Rules of length and overlap, which are reported whenever they choose the right option."""

MOST_BESIDE = 300
"""The largest number of other questions, drawn by seed: the result is needed while somebody types."""

_MIN_GROUPS, _MIN_ITEMS = 3, 12
_REFITS = 25
_LEVEL = 0.05


@dataclass(frozen=True)
class RuleCue:
    """A fixed rule that chooses the right option of the question, and its accuracy on the other questions."""

    name: str
    label: str
    others: Estimate
    above_chance: bool


@dataclass(frozen=True)
class TextCues:
    """The text-only leakage of one question. `rules` choose its right option; those above chance on the other questions come
    first, and of these the ones of length and overlap. `probability` is that of the right option (a question's options
    sum to 1) by a classifier fitted on other groups' questions, with an interval over samples of groups; None with fewer
    than 3 other groups or 12 questions."""

    chance: float
    beside: int
    rules: tuple[RuleCue, ...]
    probability: Estimate | None

    @property
    def guessable(self) -> bool:
        """Whether a rule above chance chooses the right option, or the classifier's interval is above chance."""
        low = self.probability.ci_low if self.probability is not None else None
        return any(rule.above_chance for rule in self.rules) or (low is not None and low > self.chance)


def text_cues(item: Item, beside: Sequence[Item], *, seed: int = 0) -> TextCues:
    """The cues of a choice with a key, compared with other choices (without an earlier version of it); no media are opened.
    Rules are tested on the other questions (one-sided, 5 %, Bonferroni over the rules).

    Raises `InputError` if the key is none of the options.
    """
    others = sorted((one for one in beside if one.id != item.id and len(one.options) > 1), key=lambda one: one.id)
    order = generator(seed, "living", item.id).permutation(len(others))[:MOST_BESIDE]
    others = [others[int(row)] for row in sorted(order.tolist())]
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
    hits = np.stack([baseline.hits[:, 0] for baseline in baselines])
    groups = (
        np.unique([item.group for item in table.items[1:]], return_inverse=True)[1] if len(table.items) > 1 else None
    )
    enough = groups is not None and groups.max(initial=-1) + 1 >= _MIN_GROUPS
    p = p_above_chance(hits[:, 1:], chance[1:], groups) if enough and groups is not None else np.ones(len(hits))
    found = []
    for row, one in enumerate(baselines):
        above = bool(p[row] * len(hits) < _LEVEL)
        if hits[row, 0] and (above or one.name in ALWAYS):
            values, names = hits[row, 1:].astype(float), [other.group for other in table.items[1:]]
            others = mean_interval(values, names, Resampling(draws=200, seed=seed, bounds=(0.0, 1.0)))
            found.append(RuleCue(one.name, one.label, others, above))
    return sorted(
        found,
        key=lambda rule_cue: (not rule_cue.above_chance, rule_cue.name not in ALWAYS, -(rule_cue.others.value or 0.0)),
    )


def _probability(table: OptionTable, right: NDArray[np.bool_], seed: int) -> Estimate | None:
    """The key's probability by a logistic regression on the options' features, and its 2.5 % and 97.5 % quantiles over
    samples of the other groups."""
    own = table.items[0].group
    rows = np.array([row for row, one in enumerate(table.items) if one.group != own], dtype=np.int64)
    names = sorted({table.items[row].group for row in rows})
    if len(names) < _MIN_GROUPS or len(rows) < _MIN_ITEMS:
        return None
    by_group = [rows[[table.items[row].group == name for row in rows]] for name in names]
    rng = generator(seed, "living", "refits")
    draws = [rng.integers(0, len(by_group), len(by_group)) for _ in range(_REFITS)]
    fits = [
        _key_share(table, right, np.concatenate([by_group[index] for index in indices]))
        for indices in (np.arange(len(by_group)), *draws)
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
