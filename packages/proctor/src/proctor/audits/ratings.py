"""Human ratings of answers, metrics' scores of the same answers, and counts of both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor import core

ALL = "ALL"
"""The name of all datasets together."""

RESERVED = {
    "rater": ("mean", "the raters' mean"),
    "dataset": (ALL, "all datasets"),
    "dimension": (ALL, "all dimensions"),
}
"""Reserved names by what is called so, with their meaning: ratings must not use them."""

Key = tuple[str, str, str]
"""Item, system, dimension: the unit of one score."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A human's score of one answer on one dimension.

    `system` answered `item` with the text `candidate`. Ratings of one `group` (a patient's encounter; empty: the item)
    are resampled together. `dataset` and `language` split the results (empty: no split), and the dimensions of a language
    are averaged.

    >>> Rating("e1/en", "Eczema.", "s1", "overall", "r1", 0.5).cluster
    'e1/en'
    """

    item: str
    candidate: str
    system: str
    dimension: str
    rater: str
    value: float
    group: str = ""
    dataset: str = ""
    language: str = ""

    @property
    def key(self) -> Key:
        """The key that pairs it with a metric's score."""
        return self.item, self.system, self.dimension

    @property
    def cluster(self) -> str:
        """The group, or the item without a group."""
        return self.group or self.item

    @property
    def content(self) -> str:
        """What it says of which text, without the names of item, group, system and rater."""
        return "\n".join((self.language, self.dimension, repr(self.value), self.candidate))


@dataclass(frozen=True)
class RatingsTable:
    """Ratings, at most one of each rater per key. `order` lists (language, dimension) as results are shown; others follow
    in the order of the ratings. `lower_is_better` names the dimensions on which a lower rating is better. `notes` say how
    a file was read.

    Raises `InputError` for a value that is not finite, a rater's second rating of one key, a key with two candidates,
    a rater called "mean", and a dataset or dimension called "ALL".

    >>> table = RatingsTable((Rating("e1", "Eczema.", "s1", "overall", "r1", 0.5),))
    >>> table.dimensions, table.datasets
    ((('', 'overall'),), ())
    """

    ratings: tuple[Rating, ...]
    order: tuple[tuple[str, str], ...] = ()
    lower_is_better: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        seen: set[tuple[Key, str]] = set()
        texts: dict[tuple[str, str], str] = {}
        for number, one in enumerate(self.ratings, start=1):
            location = f"rating {number} ({', '.join(one.key)})"
            if not math.isfinite(one.value):
                raise core.InputError(location, found=str(one.value), expected="a finite number")
            for what, (name, means) in RESERVED.items():
                if getattr(one, what) == name:
                    raise core.InputError(
                        location, found=f"the {what} {name!r}", expected=f"another name: it stands for {means}"
                    )
            if (one.key, one.rater) in seen:
                raise core.InputError(location, found=f"a second rating by {one.rater}", expected="one of each rater")
            seen.add((one.key, one.rater))
            if texts.setdefault((one.item, one.system), one.candidate) != one.candidate:
                raise core.InputError(location, found="another candidate", expected="one text of each system")

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """The rated (language, dimension) pairs in order."""
        rated = dict.fromkeys((rating.language, rating.dimension) for rating in self.ratings)
        return tuple(dict.fromkeys([*(pair for pair in self.order if pair in rated), *rated]))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The sorted names of the datasets, if any."""
        return tuple(sorted({rating.dataset for rating in self.ratings if rating.dataset}))

    def of(self, dataset: str, language: str) -> list[Rating]:
        """The ratings of one dataset (or `ALL`) in one language."""
        return [rating for rating in self.ratings if rating.language == language and dataset in (ALL, rating.dataset)]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The rated keys, in the order of the ratings."""
        return tuple(dict.fromkeys(rating.key for rating in self.ratings))


@dataclass(frozen=True)
class MetricScores:
    """One metric's scores by key; None where the metric opted out. `notes` are remarks for the reader.

    >>> MetricScores("bleu", {("e1", "s1", "overall"): 0.3}).notes
    ()
    """

    name: str
    scores: Mapping[Key, float | None]
    notes: tuple[str, ...] = field(default=())


def recorded_by_system(
    answers: Mapping[tuple[str, str], str], ratings: Iterable[Rating], origin: str
) -> tuple[core.RecordedAnswers, ...]:
    """Answers (texts by item and system) with their ratings as scores: one record per system, as a store imports them. A
    blank text is an unreadable answer. `origin` is the name of the file.

    >>> (one,) = recorded_by_system({("e1", "s1"): "Eczema."}, [Rating("e1", "Eczema.", "s1", "overall", "r1", 0.5)], "r.csv")
    >>> one.system, one.answers[0].text, one.scores[0].scorer
    ('s1', 'Eczema.', 'human:r1')
    """
    given: dict[str, list[core.Answer]] = {}
    for (item, system), text in answers.items():
        problem = "" if text.strip() else "expected a text, found nothing"
        answer = core.Answer(item_id=item, text=text, parsed=None if problem else text, problem=problem)
        given.setdefault(system, []).append(answer)
    scores: dict[str, list[core.Score]] = {system: [] for system in given}
    for rating in ratings:
        score = core.Score(
            item_id=rating.item, metric=rating.dimension, value=rating.value, scorer=core.human(rating.rater)
        )
        scores[rating.system].append(score)
    return tuple(
        core.RecordedAnswers(tuple(own), scores=tuple(scores[system]), settings={"recorded": origin}, system=system)
        for system, own in given.items()
    )


_MOST_LEVELS = 21
"""The most values of ratings that are taken for the levels of a scale; of more only the ends count."""


def seen_scheme(
    ratings: Iterable[Rating], lower: Collection[str] = (), before: core.RatingScheme | None = None
) -> core.RatingScheme:
    """The dimensions of ratings, with the scale as far as it is seen in them and in the scheme `before`: all values, for
    whole numbers also those between, or the ends where there are many. `lower` are better low.

    >>> rows = [Rating("q1", "", system, "clarity", "r1", value) for system, value in (("s1", 2.0), ("s2", 5.0))]
    >>> seen_scheme(rows).dimensions[0].levels
    (2.0, 3.0, 4.0, 5.0)
    """
    values: dict[str, set[float]] = {}
    for rating in ratings:
        values.setdefault(rating.dimension, set()).add(rating.value)
    known = {dimension.name: dimension for dimension in before.dimensions} if before else {}
    new = [
        core.Dimension(
            name,
            _levels({*some, *(known[name].levels if name in known else ())}),
            lower_is_better=name in lower or (name in known and known[name].lower_is_better),
            languages=known[name].languages if name in known else (),
            description=known[name].description if name in known else "",
        )
        for name, some in values.items()
    ]
    kept = [dimension for name, dimension in known.items() if name not in values]
    order = {name: row for row, name in enumerate(known)}
    dimensions = tuple(sorted([*kept, *new], key=lambda one: order.get(one.name, len(order))))
    return before.model_copy(update={"dimensions": dimensions}) if before else core.RatingScheme(dimensions=dimensions)


def _levels(values: set[float]) -> tuple[float, ...]:
    if len(values) == 1:
        values = {*values, 0.0} if values != {0.0} else {0.0, 1.0}
    low, high = min(values), max(values)
    if all(value.is_integer() for value in values) and high - low < _MOST_LEVELS:
        return tuple(float(level) for level in range(int(low), int(high) + 1))
    return tuple(sorted(values)) if len(values) <= _MOST_LEVELS else (low, high)


def compared_tables(
    table: RatingsTable,
    metrics: Sequence[MetricScores],
    scorers: Sequence[str] = (),
    against: Sequence[str] = (),
    *,
    allow_missing: bool = False,
) -> tuple[RatingsTable, list[MetricScores]]:
    """The ratings of the raters `against` (none named: all), and the metrics `scorers` (none named: all), on the answers
    that these raters rated and all of these metrics scored.

    A metric must have scored every rated answer. With `allow_missing` an answer without a score is left out for all
    metrics; a metric without scores in a dimension of a dataset and language opted out of it. The notes count what is
    left out. Raises `InputError` for an unknown name, a missing score, and if nothing is left.

    >>> table = RatingsTable(tuple(Rating("e1", "", system, "overall", "r1", 0.5) for system in ("s1", "s2")))
    >>> kept, (mine,) = compared_tables(table, [MetricScores("mine", {table.keys[0]: 0.3})], allow_missing=True)
    >>> len(kept.ratings), mine.notes
    (1, ('1 score by r1 alone: left out',))
    """
    chosen = _named(metrics, scorers)
    raters = sorted({rating.rater for rating in table.ratings})
    _refuse_unknown("ratings", "rater", against, raters)
    compared = [rating for rating in table.ratings if rating.rater in (against or raters)]
    cells = {rating.key: (rating.dataset, rating.language, rating.dimension) for rating in compared}
    if not allow_missing:
        _refuse_lacking(chosen, cells)
    scores = [_with_opted_out(one, cells) for one in chosen]
    kept = {key for key in cells if all(key in given for given in scores)}
    for metric in chosen:
        if not metric.scores.keys() & kept:
            found = "no rated answer that all metrics scored"
            raise core.InputError(f"scores by {metric.name}", found=found, expected="some")
    who, unscored = ", ".join(against or raters), len(cells) - len(kept)
    return replace(table, ratings=tuple(rating for rating in compared if rating.key in kept)), [
        MetricScores(
            metric.name,
            {key: given[key] for key in cells if key in kept},
            metric.notes + left_out((metric.name, len(metric.scores.keys() - kept)), (who, unscored)),
        )
        for metric, given in zip(chosen, scores, strict=True)
    ]


def _named(metrics: Sequence[MetricScores], names: Sequence[str]) -> list[MetricScores]:
    """The metrics with these names (none named: all)."""
    own = {metric.name: metric for metric in metrics}
    _refuse_unknown("scores", "metric", names, [*own])
    return [own[name] for name in dict.fromkeys(names)] or list(metrics)


def _refuse_unknown(location: str, what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise core.InputError(location, found=f"no {what} {name!r}", expected=core.one_of(known, name))


def _refuse_lacking(metrics: Sequence[MetricScores], cells: Mapping[Key, tuple[str, str, str]]) -> None:
    """Raises `InputError` for the first metric that has not scored every rated answer."""
    for metric in metrics:
        if lacks := [key for key in cells if key not in metric.scores]:
            found = f"none for {core.count_of(len(lacks), 'rated answer')}, the first {shown_key(lacks[0])}"
            raise core.InputError(f"scores by {metric.name}", found=found, expected="one for each, or --allow-missing")


def left_out(*sides: tuple[str, int]) -> tuple[str, ...]:
    """Notes on the number of scores that only one side gave.

    >>> left_out(("mine", 2), ("r1, r2", 0))
    ('2 scores by mine alone: left out',)
    """
    return tuple(f"{core.count_of(count, 'score')} by {who} alone: left out" for who, count in sides if count)


def _with_opted_out(metric: MetricScores, cells: Mapping[Key, tuple[str, str, str]]) -> dict[Key, float | None]:
    """A metric's scores, with None in cells without any score."""
    scored = {cells[key] for key in cells.keys() & metric.scores.keys()}
    return {key: None for key, cell in cells.items() if cell not in scored} | dict(metric.scores)


def shown_key(key: Key) -> str:
    """A key for messages."""
    return ", ".join(core.printable(part) for part in key)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of the ratings of one dataset (or all) in one language. `answers` counts texts, `ratings` single ratings,
    `twice` keys with two or more raters."""

    dataset: str
    language: str
    items: int
    groups: int
    systems: int
    answers: int
    dimensions: int
    ratings: int
    raters: tuple[str, ...]
    twice: int


@dataclass(frozen=True, slots=True)
class ScoredCount:
    """The numbers of rated keys that a metric scored and that it opted out of."""

    metric: str
    scored: int
    opted_out: int


def coverage(table: RatingsTable) -> tuple[Coverage, ...]:
    """Counts by language, on all datasets and then on each, if there are several.

    >>> from proctor.audits import Rating
    >>> rows = [Rating("e1", "Eczema.", "s1", "overall", rater, 0.5) for rater in ("a", "b")]
    >>> one, = coverage(RatingsTable(tuple(rows)))
    >>> one.answers, one.ratings, one.raters, one.twice
    (1, 2, ('a', 'b'), 1)
    """
    datasets = table.datasets
    found = []
    for language in dict.fromkeys(language for language, _ in table.dimensions):
        for dataset in (ALL, *(datasets if len(datasets) > 1 else ())):
            inside = table.of(dataset, language)
            if not inside:
                continue
            each = Counter(rating.key for rating in inside)
            found.append(
                Coverage(
                    dataset=dataset,
                    language=language,
                    items=len({rating.item for rating in inside}),
                    groups=len({rating.cluster for rating in inside}),
                    systems=len({rating.system for rating in inside}),
                    answers=len({(rating.item, rating.system) for rating in inside}),
                    dimensions=len({rating.dimension for rating in inside}),
                    ratings=len(inside),
                    raters=tuple(sorted({rating.rater for rating in inside})),
                    twice=sum(count > 1 for count in each.values()),
                )
            )
    return tuple(found)


def scored(table: RatingsTable, metric: MetricScores) -> ScoredCount:
    """The number of rated keys that the metric scored.

    >>> from proctor.audits import Rating
    >>> table = RatingsTable((Rating("e1", "Eczema.", "s1", "overall", "a", 0.5),))
    >>> scored(table, MetricScores("mine", {("e1", "s1", "overall"): None}))
    ScoredCount(metric='mine', scored=0, opted_out=1)
    """
    out = sum(metric.scores.get(key) is None for key in table.keys)
    return ScoredCount(metric.name, len(table.keys) - out, out)
