"""Declarations of metrics and of rating dimensions, and published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Literal, Self, TypedDict

from pydantic import Field, model_validator

from proctor.core.validation import FrozenModel


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric, from which the CLI, tables, docs and figures are made.

    `low` and `high` are the bounds of an item's value. `percent` shows means as percentages. `chance` is the chance
    level, if it is the same for all items. `formats` are the answer formats to which the metric applies (empty: all);
    they also determine for which metrics a failed answer is missing. `levels` are the labels of scores, best first, if
    there are only a few. If an item's value is a share of several units (such as neighbouring pairs in an ordering),
    `per` is the tag with their number, and means weight items by it. Of a metric over many items, `per` says what its
    denominator counts ("cases"). `languages` are the values of the tag `language`
    to which the metric applies (empty: all).
    """

    name: str
    label: str
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    percent: bool = False
    chance: float | None = None
    formats: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    per: str = ""
    languages: tuple[str, ...] = ()

    @property
    def worst(self) -> float:
        """The worst possible value, which wrong answers get."""
        return self.low if self.higher_is_better else self.high

    def scores(self, kind: str, language: object = None) -> bool:
        """Whether the metric applies to answers of this format, to items in this language."""
        return (not self.formats or kind in self.formats) and (
            not self.languages or language is None or language in self.languages
        )

    def show(self, value: float) -> str:
        """The value as text.

        >>> ACCURACY.show(0.6626)
        '66.3 %'
        """
        return f"{100 * value:.1f} %" if self.percent else f"{value:.2f}"


class MetricOptions(TypedDict, total=False):
    """The declaration of a metric that is given by a function (see `Metric`). The default `name` is that of the
    function, and `label` is derived from it.

    >>> MetricOptions(percent=True, formats=("free_text",))
    {'percent': True, 'formats': ('free_text',)}
    """

    name: str
    label: str
    low: float
    high: float
    higher_is_better: bool
    percent: bool
    chance: float
    formats: Sequence[str]


ACCURACY = Metric(
    "accuracy",
    "Accuracy",
    percent=True,
    formats=(
        "choice",
        "ordering",
        "binary",
        "count",
        "percentage",
        "classes",
        "timestamps",
        "intervals",
        "boxes",
        "point",
        "quantity",
        "choices",
        "short_text",
        "scale",
        "preference",
        "pattern",
    ),
)


@dataclass(frozen=True)
class PublishedRow:
    """The published values of a system by metric. `condition` is the condition, if it was stated; `facets` are the tag
    values of the subset of items to which the values refer.

    >>> PublishedRow("a team", {"accuracy": 0.63}).values["accuracy"]
    0.63
    """

    system: str
    values: dict[str, float]
    condition: str = ""
    facets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedCrossing:
    """A published cross table of one system's outcomes under two `conditions`: the first in rows, the second in
    columns, both in the order of `levels`.

    >>> PublishedCrossing("A1", "a model", "accuracy", ("text-only", "video"), ("right", "wrong"), ((97, 8), (68, 76))).name
    'A1'
    """

    name: str
    system: str
    metric: str
    conditions: tuple[str, str]
    levels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PublishedTable:
    """A published table: `rows` in the published order, `metrics` as columns, its `source`, and a `note` on comparing
    with it.

    >>> from proctor.core import ACCURACY
    >>> table = PublishedTable("A paper, table 2", "", (ACCURACY,), (PublishedRow("a team", {"accuracy": 0.63}),))
    >>> table.of("accuracy")
    [('a team', 0.63)]
    """

    source: str
    note: str
    metrics: tuple[Metric, ...]
    rows: tuple[PublishedRow, ...]
    crossings: tuple[PublishedCrossing, ...] = ()

    def of(self, metric: str) -> list[tuple[str, float]]:
        """The systems with a value of this metric over all items, and the value."""
        return [(row.system, row.values[metric]) for row in self.split(metric)]

    def split(self, metric: str, by: Sequence[str] = ()) -> list[PublishedRow]:
        """The rows with a value of this metric that are split by exactly these facets."""
        return [row for row in self.rows if metric in row.values and set(row.facets) == set(by)]


HUMAN = "human:"
"""The prefix of the scorer names of persons."""


def human(rater: str) -> str:
    """The scorer name of a human rater.

    >>> human("A1")
    'human:A1'
    """
    return f"{HUMAN}{rater}"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension on which answers are rated, with the levels that people may choose, in ascending order.

    Judges may return any number between the lowest and the highest level. A dimension with the levels 0 and 1 is a
    flag. `languages` are those in which it is rated (empty: all); `description` explains it to judges.

    >>> Dimension("overall", (0.0, 0.5, 1.0)).is_flag, Dimension("disagree_flag", (0.0, 1.0)).is_flag
    (False, True)
    """

    name: str
    levels: tuple[float, ...]
    lower_is_better: bool = False
    languages: tuple[str, ...] = ()
    description: str = ""

    @property
    def is_flag(self) -> bool:
        """Whether the levels are 0 (no) and 1 (yes)."""
        return self.levels == (0.0, 1.0)

    @property
    def metric(self) -> Metric:
        """The metric whose scores are ratings on this dimension."""
        return Metric(
            self.name,
            self.name,
            low=self.levels[0],
            high=self.levels[-1],
            higher_is_better=not self.lower_is_better,
            formats=("free_text",),
            languages=self.languages,
        )


class RatingRule(FrozenModel):
    """A constraint between dimensions: the score is at most `limit` (None: the maximum of `others`), if the minimum of
    `others` is at most `where` (None: always). It applies if all of these dimensions are rated.

    >>> rule = RatingRule(name="above-half", dimension="overall", others=("a", "b"), limit=0.5, where=0.5)
    >>> rule.broken({"overall": 0.6, "a": 0.5, "b": 0.9}), rule.broken({"overall": 0.6, "a": 0.7, "b": 0.9})
    (True, False)
    """

    name: str = Field(min_length=1)
    dimension: str
    others: tuple[str, ...] = Field(min_length=1)
    limit: float | None = None
    where: float | None = None

    def broken(self, values: Mapping[str, float]) -> bool:
        """Whether the scores violate the rule; False if a score is missing."""
        if any(name not in values for name in (self.dimension, *self.others)):
            return False
        others = [values[name] for name in self.others]
        limit = max(others) if self.limit is None else self.limit
        return (self.where is None or min(others) <= self.where) and values[self.dimension] > limit


class DerivedDimension(FrozenModel):
    """A dimension that is derived from others instead of being judged. `lowest` is the minimum of the others.
    `at-lowest` is the highest level if the first of the others is at its lowest level, and the lowest level otherwise.

    >>> DerivedDimension(dimension="overall", others=("a", "b"), how="lowest").how
    'lowest'
    """

    dimension: str
    others: tuple[str, ...] = Field(min_length=1)
    how: Literal["lowest", "at-lowest"]


class RatingScheme(FrozenModel):
    """The dimensions and rules of ratings. Judges' scores are rounded to multiples of `step` (None: not rounded).
    `role` is the role of the judge in the general prompt.

    Raises a validation error for duplicate dimensions, levels that are not ascending, and rules on unknown dimensions.

    >>> scheme = RatingScheme(dimensions=(Dimension("tone", (0.0, 1.0)), Dimension("ton", (1.0, 2.0), languages=("de",))))
    >>> [dimension.name for dimension in scheme.of("de")], [dimension.name for dimension in scheme.of("en")]
    (['tone', 'ton'], ['tone'])
    """

    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    rules: tuple[RatingRule, ...] = ()
    derived: tuple[DerivedDimension, ...] = ()
    step: float | None = Field(default=None, gt=0)
    role: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [dimension.name for dimension in self.dimensions]
        for name, levels in ((dimension.name, dimension.levels) for dimension in self.dimensions):
            if not name.strip() or names.count(name) > 1:
                raise ValueError(f"the dimension {name!r}: expected names, each once")
            if len(levels) < 2 or list(levels) != sorted(set(levels)):
                raise ValueError(f"the levels of {name!r}: expected two or more that rise")
        used = [name for rule in self.rules for name in (rule.dimension, *rule.others)]
        used += [name for derived in self.derived for name in (derived.dimension, *derived.others)]
        unknown = [name for name in used if name not in names]
        if unknown:
            raise ValueError(f"a rule about {unknown[0]!r}: expected one of {', '.join(names)}")
        return self

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The dimensions as metrics, in order."""
        return tuple(dimension.metric for dimension in self.dimensions)

    def of(self, language: str) -> tuple[Dimension, ...]:
        """The dimensions that are rated for answers in a language, in order."""
        return tuple(own for own in self.dimensions if not own.languages or language in own.languages)

    def breaks(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """The names of the rules that the scores violate."""
        return tuple(rule.name for rule in self.rules if rule.broken(values))

    def rounded(self, value: float) -> float:
        """The value rounded to the nearest multiple of `step`, half to even.

        >>> scheme = RatingScheme(dimensions=(Dimension("overall", (0.0, 1.0)),), step=0.05)
        >>> [scheme.rounded(value) for value in (0.87, 0.88, 0.025, 0.075, 1.0)]
        [0.85, 0.9, 0.0, 0.1, 1.0]
        """
        if self.step is None:
            return value
        step = Fraction(repr(self.step))
        return float(round(Fraction(repr(value)) / step) * step)

    def derive(self, levels: Mapping[str, float], language: str) -> dict[str, float]:
        """The levels of the derived dimensions of a language, given those of the others."""
        known = {dimension.name: dimension for dimension in self.of(language)}
        derived = {}
        for rule in self.derived:
            if rule.dimension in known and all(name in levels for name in rule.others):
                own, first = known[rule.dimension].levels, rule.others[0]
                at_lowest = levels[first] == known[first].levels[0]
                if rule.how == "lowest":
                    derived[rule.dimension] = min(levels[name] for name in rule.others)
                else:
                    derived[rule.dimension] = own[-1] if at_lowest else own[0]
        return derived


class Verified(StrEnum):
    """The result of recomputing a published figure: `same` (equal within its rounding), `explained` (different for a
    known reason), `absent` (the recorded answers are not available), or `different`.

    >>> [result.value for result in Verified]
    ['same', 'explained', 'absent', 'different']
    """

    SAME = "same"
    EXPLAINED = "explained"
    ABSENT = "absent"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class VerifiedFigure:
    """A published figure and ours, recomputed from recorded answers (None: not available). `tolerance` allows for its
    rounding; `explained` is the reason for a difference, if known.

    >>> VerifiedFigure("accuracy", "A paper, table 2", 0.663, 0.66265, 0.0005).state.value
    'same'
    """

    name: str
    source: str
    published: float
    ours: float | None
    tolerance: float = 1e-9
    explained: str = ""

    @property
    def state(self) -> Verified:
        """See `Verified`."""
        if self.ours is None:
            return Verified.ABSENT
        if abs(self.ours - self.published) <= self.tolerance + 1e-12:  # tolerance for rounding errors
            return Verified.SAME
        return Verified.EXPLAINED if self.explained else Verified.DIFFERENT
