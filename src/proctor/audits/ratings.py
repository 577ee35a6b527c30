"""What is audited: human ratings of answers, and one metric's scores of the same answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proctor.core import Answer, InputError, RecordedAnswers, Score, human

Key = tuple[str, str, str]
"""Item, system, dimension: what a metric gives one score to."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A human's score of one answer on one dimension.

    `system` answered `item` with the text `candidate`. What shares a `group` (a patient's encounter) is
    resampled together; none named: the item itself. `dataset` and `language` split the results, and
    dimensions of one language are averaged; empty where there is no such split.

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
        """What it is paired with a metric's score by."""
        return self.item, self.system, self.dimension

    @property
    def cluster(self) -> str:
        """The group, or the item where none is named."""
        return self.group or self.item


@dataclass(frozen=True)
class RatingsTable:
    """Ratings, each rater's of an answer's dimension once. `order` lists (language, dimension) as results
    are to be shown; what it leaves out follows in the order of the ratings. `lower_is_better` names the
    dimensions on which a lower rating is the better one.

    Raises `InputError` for a value that is not finite, a rater's second rating of one key, and a key with
    two candidates.

    >>> table = RatingsTable((Rating("e1", "Eczema.", "s1", "overall", "r1", 0.5),))
    >>> table.dimensions, table.datasets
    ((('', 'overall'),), ())
    """

    ratings: tuple[Rating, ...]
    order: tuple[tuple[str, str], ...] = ()
    lower_is_better: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        seen: set[tuple[Key, str]] = set()
        texts: dict[tuple[str, str], str] = {}
        for number, one in enumerate(self.ratings, start=1):
            place = f"rating {number} ({', '.join(one.key)})"
            if not math.isfinite(one.value):
                raise InputError(None, place, found=str(one.value), expected="a finite number")
            if (one.key, one.rater) in seen:
                raise InputError(None, place, found=f"a second rating by {one.rater}", expected="one of each rater")
            seen.add((one.key, one.rater))
            if texts.setdefault((one.item, one.system), one.candidate) != one.candidate:
                raise InputError(None, place, found="another candidate", expected="one text of each system")

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """(language, dimension) in order; those that nobody rated are left out."""
        rated = dict.fromkeys((one.language, one.dimension) for one in self.ratings)
        return tuple(dict.fromkeys([*(pair for pair in self.order if pair in rated), *rated]))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, sorted; none where the ratings name none."""
        return tuple(sorted({one.dataset for one in self.ratings if one.dataset}))

    @property
    def keys(self) -> tuple[Key, ...]:
        """What was rated, each once, in the order of the ratings."""
        return tuple(dict.fromkeys(one.key for one in self.ratings))


@dataclass(frozen=True)
class MetricScores:
    """One metric's scores by key. None stands for a key that the metric does not score on purpose
    ("opted out"). `notes` is what its reader found and a person should know.

    >>> MetricScores("bleu", {("e1", "s1", "overall"): 0.3}).notes
    ()
    """

    name: str
    scores: Mapping[Key, float | None]
    notes: tuple[str, ...] = field(default=())


def recorded_by_system(
    answers: Mapping[tuple[str, str], str], ratings: Iterable[Rating], origin: str
) -> tuple[RecordedAnswers, ...]:
    """Answers (texts by item and system) with their ratings as scores, one record for each system, as a store takes
    them. A blank text is an answer that can't be read. `origin` is the name of the file.

    >>> (one,) = recorded_by_system({("e1", "s1"): "Eczema."}, [Rating("e1", "Eczema.", "s1", "overall", "r1", 0.5)], "r.csv")
    >>> one.system, one.answers[0].text, one.scores[0].scorer
    ('s1', 'Eczema.', 'human:r1')
    """
    given: dict[str, list[Answer]] = {}
    for (item, system), text in answers.items():
        problem = "" if text.strip() else "expected a text, found nothing"
        answer = Answer(item_id=item, text=text, parsed=None if problem else text, problem=problem)
        given.setdefault(system, []).append(answer)
    scores: dict[str, list[Score]] = {system: [] for system in given}
    for one in ratings:
        score = Score(item_id=one.item, metric=one.dimension, value=one.value, scorer=human(one.rater))
        scores[one.system].append(score)
    return tuple(
        RecordedAnswers(tuple(own), scores=tuple(scores[system]), settings={"recorded": origin}, system=system)
        for system, own in given.items()
    )
