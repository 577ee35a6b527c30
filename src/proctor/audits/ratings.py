"""Human ratings of answers, metrics' scores of the same answers, their tables on file, and counts of both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from proctor import core

ALL = "ALL"
"""The name of all datasets together."""

_TAKEN = {"rater": ("mean", "the raters' mean"), "dataset": (ALL, "all datasets"), "dimension": (ALL, "all dimensions")}
"""Reserved names, with their meaning: ratings must not use them."""

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
    in the order of the ratings. `lower_is_better` names the dimensions on which a lower rating is better.

    Raises `InputError` for a value that is not finite, a rater's second rating of one key, a key with two candidates,
    a rater called "mean", and a dataset or dimension called "ALL".

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
                raise core.InputError(place, found=str(one.value), expected="a finite number")
            for what, (name, means) in _TAKEN.items():
                if getattr(one, what) == name:
                    raise core.InputError(
                        place, found=f"the {what} {name!r}", expected=f"another name: it stands for {means}"
                    )
            if (one.key, one.rater) in seen:
                raise core.InputError(place, found=f"a second rating by {one.rater}", expected="one of each rater")
            seen.add((one.key, one.rater))
            if texts.setdefault((one.item, one.system), one.candidate) != one.candidate:
                raise core.InputError(place, found="another candidate", expected="one text of each system")

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


_RATING_COLUMNS = ("item", "system", "rater", "value")
_VALUE = "value"
_SCORE_COLUMNS = ("item", "system", _VALUE)
_NO_METRIC = {*_SCORE_COLUMNS, "dimension", "candidate", "group", "dataset", "language", "rater", "lower_is_better"}
_NAMES = {"item", "system", "dimension", "rater"}
_WRITTEN = {*_SCORE_COLUMNS, "candidate", "rater", "dimension", "group"}
_MAX_METRICS = 50  # they are compared in pairs
_ONE_DIMENSION = "quality"
"""The dimension of a table without dimensions."""
_YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}


def read_ratings(file: Path) -> RatingsTable:
    """Ratings from a table (see `read_sheet`) with the columns `item, system, rater, value`, and optionally `candidate`,
    `dimension` (default: a single one), `lower_is_better` (yes or no, by dimension), `group`, `dataset` and `language`
    (see `Rating`). Raises `InputError`, with the row, for anything else.
    """
    ratings: list[Rating] = []
    seen: dict[tuple[Key, str], int] = {}
    texts: dict[tuple[str, str], tuple[str, int]] = {}
    groups: dict[tuple[str, str], tuple[str, int]] = {}
    lower: dict[str, tuple[bool, int]] = {}
    for row in _rows(file, _RATING_COLUMNS):
        cells = {"dimension": _ONE_DIMENSION, "candidate": ""} | row.cells
        one = Rating(
            value=_value(file, row),
            **{name: _named(file, row, cells, name) for name in ("item", "system", "dimension", "rater")},
            candidate=cells["candidate"],
            group=cells.get("group", ""),
            dataset=cells.get("dataset", ""),
            language=cells.get("language", ""),
        )
        for what, (name, means) in _TAKEN.items():
            if getattr(one, what) == name:
                raise core.TableFault(row.number, what, repr(name), f"another name: it stands for {means}").error(file)
        first = seen.setdefault((one.key, one.rater), row.number)
        if first != row.number:
            found = f"a second rating by {one.rater!r}, after row {first}"
            raise core.TableFault(row.number, "rater", found, "one of each rater").error(file)
        text, where = texts.setdefault((one.item, one.system), (one.candidate, row.number))
        if text != one.candidate:
            raise core.TableFault(row.number, "candidate", "another text", f"that of row {where}").error(file)
        group, where = groups.setdefault((one.item, one.system), (one.group, row.number))
        if group != one.group:
            raise core.TableFault(row.number, "group", "another group", f"that of row {where}").error(file)
        turned = _is_lower(file, row)
        before, where = lower.setdefault(one.dimension, (turned, row.number))
        if before != turned:
            raise core.TableFault(row.number, "lower_is_better", "another direction", f"that of row {where}").error(
                file
            )
        ratings.append(one)
    return RatingsTable(
        tuple(ratings), lower_is_better=frozenset(name for name, (turned, _) in lower.items() if turned)
    )


def _rows(file: Path, columns: Sequence[str]) -> list[core.TableRow]:
    """The rows of a table that has at least these columns, all cells as texts, with decimal points. A file without a known
    extension is CSV. Raises `InputError`, with the row, for the first fault."""
    if file.suffix.lower() not in core.SHEET_SUFFIXES:
        return core.read_table(file, columns).checked(file)
    sheet = core.read_sheet(file)
    if sheet.faults:
        raise sheet.faults[0].error(file)
    for sheet_row in sheet.rows:
        for name in sheet_row.cells.keys() & _WRITTEN:
            if lost := core.lost_text(sheet_row.cells[name]):
                raise core.TableFault(sheet_row.number, name, lost, "the text as it was written").error(file)
    rows = [
        core.TableRow(
            row.number,
            {
                name: _plain(cell) if name in _NAMES else cell if isinstance(cell, str) else core.cell_text(cell)
                for name, cell in row.cells.items()
            },
        )
        for row in sheet.rows
    ]
    for row in rows:
        missing = [name for name in columns if name not in row.cells]
        if missing:
            listed = f"the columns {', '.join(columns)}"
            raise core.TableFault(1, "", f"no column {missing[0]!r}", listed).error(file)
        for name in row.cells.keys() - _NO_METRIC | {_VALUE} & row.cells.keys() if sheet.decimal_comma else ():
            row.cells[name] = row.cells[name].replace(",", ".")
    return rows


def _plain(cell: object) -> str:
    """A name as it was before `safe_cell`."""
    return str(core.read_safe_cell(cell if isinstance(cell, str) else core.cell_text(cell)))


def _is_lower(file: Path, row: core.TableRow) -> bool:
    text = row.cells.get("lower_is_better", "")
    if (found := _YES_OR_NO.get(text.strip().casefold())) is None:
        raise core.TableFault(row.number, "lower_is_better", repr(text)[:80], "yes or no").error(file)
    return found


def read_scores(file: Path, table: RatingsTable, *, allow_missing: bool = False) -> MetricScores:
    """One metric's scores of rated answers from a table (see `read_sheet`) with the columns `item, system, value`, and
    optionally `dimension`. Without it a score stands for every rated dimension of its answer: 1 − the score where lower
    is better. A column `candidate` must hold the rated texts. The metric is named after the file.

    Raises `InputError`, with the row, for anything else: answers without a rating, two scores of one answer, and, unless
    with `allow_missing`, ratings without a score.
    """
    rows = _rows(file, _SCORE_COLUMNS)
    return MetricScores(file.stem, _scores_in(file, rows, _VALUE, table, allow_missing))


def read_metrics(file: Path, table: RatingsTable, *, allow_missing: bool = False) -> tuple[MetricScores, ...]:
    """The scores of one metric, as `read_scores`, or of several from a wide table: one column per metric instead of `value`.

    Raises `InputError` as `read_scores`, for a cell of a wide table that is no number, and for a table with `value` and
    other columns of numbers, which is ambiguous.
    """
    rows = _rows(file, _SCORE_COLUMNS[:2])
    others = [name for name in rows[0].cells if name not in _NO_METRIC]
    if _VALUE in rows[0].cells:
        numbers = [name for name in others if all(core.cell_number(row.cells[name]) is not None for row in rows)]
        if numbers:
            found = f"{_VALUE!r} beside numbers in {', '.join(map(repr, map(core.printable, numbers)))}"
            raise core.InputError(
                file, found=found[:160], expected=f"{_VALUE!r} alone, or one column for each metric without it"
            )
        return (read_scores(file, table, allow_missing=allow_missing),)
    if not 1 <= len(others) <= _MAX_METRICS:
        found = f"{len(others)} columns of scores"
        raise core.InputError(
            file, found=found, expected=f"{_VALUE!r}, or one column for each metric (at most {_MAX_METRICS})"
        )
    return tuple(MetricScores(name, _scores_in(file, rows, name, table, allow_missing)) for name in others)


def _scores_in(
    file: Path, rows: Sequence[core.TableRow], column: str, table: RatingsTable, allow_missing: bool
) -> dict[Key, float | None]:
    """The scores in one column by key."""
    texts = {rating.key: rating.candidate for rating in table.ratings}
    rated: dict[tuple[str, str], list[Key]] = {}
    for key in table.keys:
        rated.setdefault(key[:2], []).append(key)
    scores: dict[Key, float | None] = {}
    for row in rows:
        item, system = (_named(file, row, row.cells, name) for name in _SCORE_COLUMNS[:2])
        keys, turned = rated.get((item, system), []), table.lower_is_better
        if "dimension" in row.cells:
            turned = frozenset()
            keys = [(item, system, _named(file, row, row.cells, "dimension"))]
        value = _value(file, row, column)
        if not keys or keys[0] not in texts:
            shown = _shown(keys[0]) if keys else f"{core.printable(item)}, {core.printable(system)}"
            raise core.TableFault(row.number, "", shown, "an answer that was rated").error(file)
        if row.cells.get("candidate", texts[keys[0]]) != texts[keys[0]]:
            raise core.TableFault(row.number, "candidate", "another text", "the rated one").error(file)
        if keys[0] in scores:
            raise core.TableFault(row.number, "", f"{_shown(keys[0])} again", "one score of each").error(file)
        scores |= {key: 1 - value if key[2] in turned else value for key in keys}
    for key in table.keys:
        if key not in scores and not allow_missing:
            raise core.TableFault(0, "", f"no score of {_shown(key)}", "one of every rated answer").error(file)
    return scores


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
    own, raters = {metric.name: metric for metric in metrics}, sorted({rating.rater for rating in table.ratings})
    for place, what, names, known in (("scores", "metric", scorers, [*own]), ("ratings", "rater", against, raters)):
        for name in names:
            if name not in known:
                raise core.InputError(place, found=f"no {what} {name!r}", expected=core.one_of(known, name))
    chosen = [own[name] for name in dict.fromkeys(scorers)] or list(metrics)
    cells = {
        rating.key: (rating.dataset, rating.language, rating.dimension)
        for rating in table.ratings
        if not against or rating.rater in against
    }
    scores = [
        _with_opted_out(metric_scores, cells) if allow_missing else dict(metric_scores.scores)
        for metric_scores in chosen
    ]
    kept = {key for key in cells if all(key in given for given in scores)}
    if not allow_missing and len(kept) < len(cells):
        name, given = next(
            (metric_scores.name, metric_scores.scores)
            for metric_scores in chosen
            if cells.keys() - metric_scores.scores.keys()
        )
        lacks = [key for key in cells if key not in given]
        found = f"none for {core.count_of(len(lacks), 'rated answer')}, the first {_shown(lacks[0])}"
        raise core.InputError(f"scores by {name}", found=found, expected="one for each, or --allow-missing")
    alone = next((metric_scores.name for metric_scores in chosen if not metric_scores.scores.keys() & kept), None)
    if alone is not None:
        raise core.InputError(f"scores by {alone}", found="no rated answer that all metrics scored", expected="some")
    who, unscored = ", ".join(against or raters), len(cells) - len(kept)
    ratings = (rating for rating in table.ratings if rating.key in kept and (not against or rating.rater in against))
    return replace(table, ratings=tuple(ratings)), [
        MetricScores(
            metric.name,
            {key: given[key] for key in cells if key in kept},
            metric.notes + left_out((metric.name, len(metric.scores.keys() - kept)), (who, unscored)),
        )
        for metric, given in zip(chosen, scores, strict=True)
    ]


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


def _shown(key: Key) -> str:
    return ", ".join(core.printable(part) for part in key)


def _named(file: Path, row: core.TableRow, cells: Mapping[str, str], column: str) -> str:
    text = cells[column]
    if not text.strip():
        raise core.TableFault(row.number, column, "nothing", "a name").error(file)
    return text


def _value(file: Path, row: core.TableRow, column: str = _VALUE) -> float:
    value = core.cell_number(row.cells[column])
    if value is None:
        raise core.TableFault(row.number, column, repr(row.cells[column])[:80], "a finite number").error(file)
    return value


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
