"""What a metric is called, where it lies and which way is better; and the figures that others published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Literal, Self, TypedDict

from pydantic import BaseModel, ConfigDict, Field, model_validator


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric from which the CLI, tables, docs and figures are made.

    `low` and `high` bound the value of one item; `percent` says that means are shown in per cent;
    `chance` is the mean that blind guessing reaches where that is one number for all items; `formats`
    are the kinds of answer that it marks (none named: all), so that a failed answer, which has no
    score, is still known to be missing from it; `levels` are the labels of its scores, best first, where
    it has a few named ones. Where the value of an item is a share of several units (pairs of neighbours in an
    order), `per` is the tag that says of how many: a mean over items is then the share of all their units.
    `languages` are the values of the tag `language` whose items it marks (none named: all).
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
        """The value of a wrong answer."""
        return self.low if self.higher_is_better else self.high

    def marks(self, kind: str, language: object = None) -> bool:
        """Whether answers of this format kind, to an item in this language, are marked by it."""
        return (not self.formats or kind in self.formats) and (
            not self.languages or language is None or language in self.languages
        )

    def show(self, value: float) -> str:
        """The value as people read it.

        >>> ACCURACY.show(0.6626)
        '66.3 %'
        """
        return f"{100 * value:.1f} %" if self.percent else f"{value:.2f}"


class MetricOptions(TypedDict, total=False):
    """What may be declared of a metric beside its function (see `Metric`): `name` is the function's and `label` made
    from it, where none are given.

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
    """One system with its values by the metric's name; one that was not published is absent. `condition` is what it
    saw, where that was said, and `facets` of which items alone the values are.

    >>> PublishedRow("a team", {"accuracy": 0.63}).values["accuracy"]
    0.63
    """

    system: str
    values: dict[str, float]
    condition: str = ""
    facets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedCrossing:
    """One system's items counted by their outcome under two `conditions`: the first in the rows, the second in the
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
    """Rows in the published order; `metrics` are the columns, `source` says where they stand, `note` what a reader
    should know before holding anything against them.

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
        """The systems that have a value of this metric over all items, with it."""
        return [(row.system, row.values[metric]) for row in self.split(metric)]

    def split(self, metric: str, by: Sequence[str] = ()) -> list[PublishedRow]:
        """The rows that have a value of this metric, split by just these facets."""
        return [row for row in self.rows if metric in row.values and set(row.facets) == set(by)]


HUMAN = "human:"
"""What the name of a scorer begins with that is a person."""


def human(rater: str) -> str:
    """The scorer's name of a person who rates.

    >>> human("A1")
    'human:A1'
    """
    return f"{HUMAN}{rater}"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that answers are rated on, with the values that people may give, lowest first.

    A judge may give any number between the lowest and the highest. A flag (0 or 1) is yes or no. `languages` are
    those in which it is rated (none named: all); `description` says to a judge what it means.

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
        """Whether it is yes or no."""
        return self.levels == (0.0, 1.0)

    @property
    def metric(self) -> Metric:
        """The metric of which a rating on it is a score."""
        return Metric(
            self.name,
            self.name,
            low=self.levels[0],
            high=self.levels[-1],
            higher_is_better=not self.lower_is_better,
            formats=("free_text",),
            languages=self.languages,
        )


class _Frozen(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", allow_inf_nan=False)


class RatingRule(_Frozen):
    """How the score on a dimension depends on those on others: at most `limit` (None: the highest of `others`), and
    that only where the lowest of `others` is at most `where` (None: always). It is checked where all of them are rated.

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
        """Whether scores break it; never where one that it is about is not given."""
        if any(name not in values for name in (self.dimension, *self.others)):
            return False
        others = [values[name] for name in self.others]
        most = max(others) if self.limit is None else self.limit
        return (self.where is None or min(others) <= self.where) and values[self.dimension] > most


class DerivedDimension(_Frozen):
    """A dimension whose level follows from others, for judges that are not asked for it: the `lowest` of them, or
    (`at-lowest`) its own highest level where the first of them is at its lowest level, else its own lowest.

    >>> DerivedDimension(dimension="overall", others=("a", "b"), how="lowest").how
    'lowest'
    """

    dimension: str
    others: tuple[str, ...] = Field(min_length=1)
    how: Literal["lowest", "at-lowest"]


class RatingScheme(_Frozen):
    """All of it. `step` is the grid that a judge's scores are rounded to (None: none). `role` says to a judge who
    it is, where the general prompt is used.

    Raises a validation error for a dimension given twice, levels that do not rise, and rules about unknown dimensions.

    >>> scheme = RatingScheme(dimensions=(Dimension("tone", (0.0, 1.0)), Dimension("ton", (1.0, 2.0), languages=("de",))))
    >>> [one.name for one in scheme.of("de")], [one.name for one in scheme.of("en")]
    (['tone', 'ton'], ['tone'])
    """

    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    rules: tuple[RatingRule, ...] = ()
    derived: tuple[DerivedDimension, ...] = ()
    step: float | None = Field(default=None, gt=0)
    role: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [one.name for one in self.dimensions]
        for one in self.dimensions:
            if not one.name.strip() or names.count(one.name) > 1:
                raise ValueError(f"the dimension {one.name!r}: expected names, each once")
            if len(one.levels) < 2 or list(one.levels) != sorted(set(one.levels)):
                raise ValueError(f"the levels of {one.name!r}: expected two or more that rise")
        spoken_of = [(rule.dimension, *rule.others) for rule in self.rules]
        spoken_of += [(rule.dimension, *rule.others) for rule in self.derived]
        unknown = [name for some in spoken_of for name in some if name not in names]
        if unknown:
            raise ValueError(f"a rule about {unknown[0]!r}: expected one of {', '.join(names)}")
        return self

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The dimensions as metrics, in order."""
        return tuple(one.metric for one in self.dimensions)

    def of(self, language: str) -> tuple[Dimension, ...]:
        """The dimensions that answers in a language are rated on, in order."""
        return tuple(one for one in self.dimensions if not one.languages or language in one.languages)

    def breaks(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """The names of the rules that scores break."""
        return tuple(rule.name for rule in self.rules if rule.broken(values))

    def rounded(self, value: float) -> float:
        """The nearest value of the grid; halfway between two, the even multiple of the step.

        >>> scheme = RatingScheme(dimensions=(Dimension("overall", (0.0, 1.0)),), step=0.05)
        >>> [scheme.rounded(value) for value in (0.87, 0.88, 0.025, 0.075, 1.0)]
        [0.85, 0.9, 0.0, 0.1, 1.0]
        """
        if self.step is None:
            return value
        step = Fraction(repr(self.step))
        return float(round(Fraction(repr(value)) / step) * step)

    def derive(self, levels: Mapping[str, float], language: str) -> dict[str, float]:
        """The derived dimensions of a language, from the levels of the others."""
        known = {one.name: one for one in self.of(language)}
        found = {}
        for rule in self.derived:
            if rule.dimension in known and all(name in levels for name in rule.others):
                own, first = known[rule.dimension].levels, rule.others[0]
                at_lowest = levels[first] == known[first].levels[0]
                found[rule.dimension] = (
                    min(levels[name] for name in rule.others)
                    if rule.how == "lowest"
                    else own[-1]
                    if at_lowest
                    else own[0]
                )
        return found


class Verified(StrEnum):
    """What became of a published figure: `same` as ours, as exactly as it was published; `explained`: it differs, and
    why is known; `absent`: the recorded answers behind it are not at hand; `different`.

    >>> [one.value for one in Verified]
    ['same', 'explained', 'absent', 'different']
    """

    SAME = "same"
    EXPLAINED = "explained"
    ABSENT = "absent"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class VerifiedFigure:
    """A published figure beside ours, computed from recorded answers (None: these are not at hand). `source` says where
    it stands, `tolerance` what its rounding allows, `explained` why it differs where that is known.

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
        if abs(self.ours - self.published) <= self.tolerance + 1e-12:  # a bound that was rounded itself
            return Verified.SAME
        return Verified.EXPLAINED if self.explained else Verified.DIFFERENT
