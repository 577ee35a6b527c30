"""People's ratings and automatic scores of the same answers, read from a store for an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import HUMAN, InputError, Judgement, Metric, RatingScheme, count_of, shell_word, store_word
from proctor.judges import JUDGE_FLAGS, UNRESOLVED, is_decided
from proctor.results.arrays import load_items, load_labels, load_raw_series
from proctor.runs import CODE, Run, Store, chosen_runs, run_name

if TYPE_CHECKING:
    from proctor.audits import Key, MetricScores, Rating, RatingsTable
    from proctor.judges.dimensions import Case, RatedCase


def judges_of(store: Store, benchmark: str) -> list[str]:
    """The sorted names of all scorers with scores, people included, except code."""
    return sorted(store.scorers(benchmark).keys() - {CODE})


def _people(store: Store, benchmark: str) -> list[str]:
    return [name for name in judges_of(store, benchmark) if name.startswith(HUMAN)]


def compared(
    store: Store,
    benchmark: str,
    scorers: Sequence[str] = (),
    against: Sequence[str] = (),
    *,
    all_items: bool = False,
    allow_missing: bool = False,
) -> tuple[RatingsTable, list[MetricScores]]:
    """The scores of `against` (none named: all people) as ratings, and those of `scorers` (none named: all others with the
    same dimensions) of the same answers as metrics.

    A dimension is a metric that both gave. A scorer's only other metric stands for each dimension on which people rated
    and the scorer gave nothing, on the dimension's scale, reversed where lower is better. A system is a run: its name, with the condition if a system has several or no
    person rated. Where people rated, a scorer must have scored every rated answer of a dimension, in a dataset and
    language, or none (it opted out); with `allow_missing` an answer without a score is left out for all. Two judges are
    compared on the answers that both scored. The notes count what is left out. Raises `InputError` for an unknown scorer,
    for one compared with itself, and if there is nothing to compare.
    """
    from proctor.audits import MetricScores, RatingsTable, left_out

    _check_judges(store, benchmark, scorers, against)
    raters = list(against) or _people(store, benchmark)
    if not raters:
        raise no_ratings(store, benchmark, " Or name a scorer instead: --against NAME")
    strict = all(name.startswith(HUMAN) for name in raters)
    given = GivenScores(store, benchmark, all_items=all_items, short_names=strict)
    scores = {name: given.scores(name) for name in raters}
    rated = {key for name in raters for key in scores[name]}
    own = _scores_beside(given, raters, scorers, rated)
    kept = _kept(given, own, rated, allow_missing=allow_missing)
    for name in own:
        if not own[name].keys() & kept:
            location = f"judges {', '.join((name, *raters))}"
            raise InputError(store.shown, location, found="no answer that both scored", expected="some")
    ratings = tuple(rating for name in raters for rating in given.ratings(name, scores[name], kept))
    order, lower = given.order()
    return RatingsTable(ratings, order, lower), [
        MetricScores(
            name,
            {key: own[name].get(key) for key in dict.fromkeys(rating.key for rating in ratings)},
            left_out((name, len(own[name].keys() - kept)), (", ".join(raters), len(rated - kept))),
        )
        for name in (scorers or own)
    ]


def judgements_behind(
    store: Store, benchmark: str, scorers: Sequence[str], against: Sequence[str] = ()
) -> dict[tuple[str, str], list[Judgement]]:
    """The judgements of these scorers by item and system, named as in `compared`."""
    raters = list(against) or _people(store, benchmark)
    runs, short = chosen_runs(store, benchmark), all(name.startswith(HUMAN) for name in raters)
    found: dict[tuple[str, str], list[Judgement]] = {}
    for run in runs:
        system = run_name(run, runs, short=short)
        for scorer in scorers:
            rows = {row.judgement_key: row.item_id for row in store.score_rows(run, scorer=scorer) if row.judgement_key}
            judgements = store.judgements(rows)
            for key, item in rows.items():
                if key in judgements:
                    found.setdefault((item, system), []).append(judgements[key])
    return found


def _check_judges(store: Store, benchmark: str, scorers: Sequence[str], against: Sequence[str]) -> None:
    """Raises `InputError` for a name without scores, and for one that would be compared with itself."""
    known = judges_of(store, benchmark)
    for name in (*scorers, *against):
        if name not in known:
            listed = f"one of {', '.join(known)}" if known else "a judge, and none has scored anything"
            raise InputError(store.shown, f"judge of {benchmark}", found=repr(name), expected=listed)
        if name in scorers and name in against:
            raise InputError(store.shown, "judges", found=f"{name} twice", expected="two judges")


def _scores_beside(
    given: GivenScores, raters: Sequence[str], scorers: Sequence[str], rated: set[Key]
) -> dict[str, dict[Key, float]]:
    """The scores of the named scorers; or of all that are no raters and scored anything that was rated."""
    store, benchmark = given.store, given.benchmark
    others = [name for name in judges_of(store, benchmark) if name not in raters and not name.startswith(HUMAN)]
    scores = {name: given.scores(name) for name in (scorers or others)}
    if given.short_names:
        scores = {name: given.on_dimensions(name, own, rated) for name, own in scores.items()}
    if not scorers:
        scores = {name: own for name, own in scores.items() if own.keys() & rated}
    if not scores:
        location = f"scorers of {benchmark}"
        raise InputError(store.shown, location, found="none but the raters", expected="proctor score first")
    return scores


def _kept(
    given: GivenScores, scores: Mapping[str, Mapping[Key, float]], rated: set[Key], *, allow_missing: bool
) -> set[Key]:
    """The rated answers that all scorers scored, but those that opted out of people's dimensions."""
    opted_out = {name: given.opted_out(own, rated) if given.short_names else set() for name, own in scores.items()}
    due = {name: rated - opted_out[name] for name in scores}
    if given.short_names and not allow_missing:
        _refuse_lacking(given.store, scores, due)
    return {key for key in rated if all(key in own or key not in due[name] for name, own in scores.items())}


def _refuse_lacking(store: Store, scores: Mapping[str, Mapping[Key, float]], due: Mapping[str, set[Key]]) -> None:
    """Raises `InputError` for the first scorer without a score of an answer that is due."""
    for name, keys in due.items():
        if lacks := sorted(keys - scores[name].keys()):
            found = f"none for {count_of(len(lacks), 'rated answer')}, the first {', '.join(lacks[0])}"
            expected = "one for each: proctor score again, or --allow-missing"
            raise InputError(store.shown, f"scores by {name}", found=found, expected=expected)


@dataclass
class GivenScores:
    """The answers of a benchmark with all scores."""

    store: Store
    benchmark: str
    all_items: bool
    short_names: bool

    def __post_init__(self) -> None:
        self.card = self.store.card(self.benchmark)
        self.runs = chosen_runs(self.store, self.benchmark)
        self.table = load_items(self.store, self.card, all_items=self.all_items)
        self.items = {item.id: item for item in self.store.items(self.benchmark)}
        self.named = {run.id: run_name(run, self.runs, short=self.short_names) for run in self.runs}
        self.series = {run.id: load_raw_series(self.store, run, self.table) for run in self.runs}
        self.texts = {
            (name, self.named[run.id]): answer.wording
            for run in self.runs
            for name, answer in self.store.answers(run).items()
        }

    def scores(self, scorer: str) -> dict[Key, float]:
        """A scorer's scores, without those that a person decided."""
        return {
            (self.table.ids[position], self.named[run.id], series.metric): float(series.values[position])
            for run in self.runs
            for by_people in [self._decided(run, scorer)]
            for series in self.series[run.id]
            if series.scorer == scorer and series.metric not in JUDGE_FLAGS
            for position in series.scored.nonzero()[0].tolist()
            if position not in by_people
        }

    def _decided(self, run: Run, scorer: str) -> set[int]:
        labels = load_labels(self.store, run, self.table, UNRESOLVED.name, scorer)
        return {position for position, label in labels.items() if is_decided(label)}

    def on_dimensions(self, scorer: str, scores: Mapping[Key, float], rated: set[Key]) -> dict[Key, float]:
        """The scores, with those of the scorer's only metric that is no dimension of ratings on all rated keys without a
        score. Beside scores on dimensions only a metric of the scorer's own name counts: those of a text metric from
        before the ratings came."""
        known = {} if self.card.rating is None else {metric.name: metric for metric in self.card.rating.metrics}
        given, dimensions = {key[2] for key in scores}, {key[2] for key in rated}
        others = given - known.keys()
        if len(others) != 1 or not dimensions <= known.keys() or (given & dimensions and others != {scorer}):
            return dict(scores)
        general = self.card.metric(others.pop())
        span = general.high - general.low
        found = dict(scores)
        for key in rated - scores.keys():
            value = scores.get((key[0], key[1], general.name))
            if value is not None and span:
                share = (value - general.low) / span
                found[key] = _on_scale(known[key[2]], share if general.higher_is_better else 1 - share)
        return {key: value for key, value in found.items() if key[2] != general.name}

    def cell(self, key: Key) -> tuple[str, str, str]:
        """Dataset, language and dimension."""
        tags = self.items[key[0]].tags
        return str(tags.get("dataset", "")), str(tags.get("language", "")), key[2]

    def opted_out(self, scores: Mapping[Key, float], rated: set[Key]) -> set[Key]:
        """The rated keys in cells without any of the scorer's scores."""
        scored = {self.cell(key) for key in scores}
        return {key for key in rated if self.cell(key) not in scored}

    def ratings(self, scorer: str, scores: Mapping[Key, float], kept: set[Key]) -> list[Rating]:
        from proctor.audits import Rating

        found = []
        for key, value in scores.items():
            if key in kept:
                item, system, dimension = key
                dataset, language, _ = self.cell(key)
                group = self.items[item].group
                rater = scorer.removeprefix(HUMAN)
                text = self.texts[item, system]
                found.append(Rating(item, text, system, dimension, rater, value, group, dataset, language))
        return found

    def order(self) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
        """The (language, dimension) pairs in the benchmark's order, and the dimensions on which lower is better."""
        metrics = self.card.metrics
        spoken = dict.fromkeys(language for metric in metrics for language in metric.languages)
        order = tuple(
            (language, metric.name)
            for language in spoken
            for metric in metrics
            if not metric.languages or language in metric.languages
        )
        return order, frozenset(metric.name for metric in metrics if not metric.higher_is_better)


def no_ratings(store: Store, benchmark: str, more: str = "") -> InputError:
    """The error of a benchmark that nobody has rated, with what to do; `more` is another way."""
    name, location = shell_word(benchmark), store_word(store.shown)
    how = f"Import them: proctor import {name} RATINGS.csv --store {location}"
    tables = "Or compare two tables: proctor audit --scores SCORES.csv --ratings RATINGS.csv"
    return InputError(f"{store.shown} has no ratings of {benchmark} by people. {how}. {tables}.{more}")


def people_ratings(store: Store, benchmark: str) -> RatingsTable:
    """All ratings by people. Raises `InputError` if there are none."""
    from proctor.audits import RatingsTable

    people = _people(store, benchmark)
    given = GivenScores(store, benchmark, all_items=False, short_names=True)
    scores = {name: given.scores(name) for name in people}
    ratings = tuple(rating for name in people for rating in given.ratings(name, scores[name], set(scores[name])))
    if not ratings:
        raise no_ratings(store, benchmark)
    return RatingsTable(ratings, *given.order())


def similarity_scores(
    table: RatingsTable,
    rated: Mapping[tuple[str, str], RatedCase],
    scheme: RatingScheme,
    names: Sequence[str] = ("all",),
) -> list[MetricScores]:
    """The scores of rated answers by text metrics (see `text_metrics`): the same on every dimension, reversed where lower is
    better."""
    from proctor.audits import MetricScores
    from proctor.metrics.text import similarity_values, text_metrics

    cases = {key: one.case for key, one in rated.items()}
    texts = {
        key: (one.candidate, tuple(reference.text for reference in one.references), one.language)
        for key, one in cases.items()
    }
    by_name = {dimension.name: dimension.metric for dimension in scheme.dimensions}
    found = []
    for metric in text_metrics(names):
        alike = similarity_values(metric, texts)
        found.append(
            MetricScores(
                metric.name, {key: _on_scale(by_name[key[2]], alike[key[:2]]) for key in table.keys}, metric.notes()
            )
        )
    return found


def _on_scale(metric: Metric, share: float) -> float:
    span = metric.high - metric.low
    return metric.low + span * share if metric.higher_is_better else metric.high - span * share


def rated_cases(
    store: Store, benchmark: str, scheme: RatingScheme, *, images: Path | None = None
) -> dict[tuple[str, str], RatedCase]:
    """The rated answers as cases with their ratings, by item and system."""
    from proctor.judges.dimensions import RatedCase

    given = GivenScores(store, benchmark, all_items=False, short_names=True)
    ratings: dict[tuple[str, str], dict[str, list[float]]] = {}
    for name in _people(store, benchmark):
        for (item, system, dimension), value in given.scores(name).items():
            ratings.setdefault((item, system), {}).setdefault(dimension, []).append(value)
    cases = _cases(given, scheme, images)
    return {
        key: RatedCase(
            case,
            {name: sum(values) / len(values) for name, values in ratings[key].items()},
            {name: tuple(values) for name, values in ratings[key].items()},
        )
        for key, case in cases.items()
        if key in ratings
    }


def scored_cases(
    store: Store, benchmark: str, scheme: RatingScheme, scorer: str, *, images: Path | None = None
) -> dict[Case, dict[str, float]]:
    """A scorer's scores of each answer by dimension. Raises `InputError` for different scores of equal texts of two
    systems, since a judge does not know the system."""
    given = GivenScores(store, benchmark, all_items=False, short_names=True)
    cases = _cases(given, scheme, images)
    found: dict[Case, dict[str, float]] = {}
    every = {(*key, dimension.name) for key, case in cases.items() for dimension in case.dimensions}
    for (item, system, dimension), value in given.on_dimensions(scorer, given.scores(scorer), every).items():
        if (item, system) not in cases:
            continue
        before = found.setdefault(cases[item, system], {}).setdefault(dimension, value)
        if before != value:
            location = f"scores by {scorer}"
            twice = f"{before:g} and {value:g} on {dimension} for one text, an answer to {item}"
            raise InputError(store.shown, location, found=twice, expected="the same score")
    return found


def _cases(given: GivenScores, scheme: RatingScheme, images: Path | None) -> dict[tuple[str, str], Case]:
    from proctor.judges.dimensions import candidate_of, case_of

    answers = {given.named[run.id]: given.store.answers(run) for run in given.runs}
    return {
        (name, system): case_of(given.items[name], candidate_of(given_answers[name]), scheme, images)
        for name in given.table.ids
        if scheme.of(str(given.items[name].tags.get("language", "")))
        for system, given_answers in answers.items()
        if name in given_answers
    }


def answer_keys(store: Store, benchmark: str) -> dict[Key, str]:
    """The texts of answers by item, system and dimension: of the rated ones, or, without ratings, of all answers on all
    dimensions. Raises `InputError` for a benchmark without dimensions."""
    scheme = store.card(benchmark).rating
    if scheme is None:
        raise InputError(store.shown, f"benchmark {benchmark}", found="no dimensions", expected="a rated benchmark")
    given = GivenScores(store, benchmark, all_items=True, short_names=True)
    people = _people(store, benchmark)
    rated = {key: given.texts[key[:2]] for name in people for key in given.scores(name)}
    return rated or {
        (item, system, dimension.name): text
        for (item, system), text in given.texts.items()
        for dimension in scheme.of(str(given.items[item].tags.get("language", "")))
    }
