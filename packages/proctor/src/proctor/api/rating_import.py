"""People's ratings of any benchmark's answers, from a table: `import_answers` of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from proctor import core
from proctor.shell import ImportOptions, StoredRuns, existing_store, open_store, remember

if TYPE_CHECKING:
    from proctor.audits import RatingRows
    from proctor.runs import Run, Store

FORM = "ratings"
"""The recorded format of answers that a table of ratings brought."""

_Answer = tuple[str, str]
"""Item and system."""


def rating_fields(columns: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The named columns of a table of ratings, and those of the questions.

    >>> rating_fields({"rater": ["avaliador"], "question": ["pergunta"]})
    ({'rater': ['avaliador']}, {'question': ['pergunta']})
    """
    from proctor.audits import RATING_FIELDS

    given = {name: [one] if isinstance(one, str) else list(one) for name, one in columns.items()}
    shared = {"group", "dataset", "language"}  # the questions have these themselves
    own = {name: some for name, some in given.items() if name in RATING_FIELDS and name not in shared}
    return own, {name: some for name, some in given.items() if name not in own}


def holds_ratings(path: Path, columns: Mapping[str, Sequence[str]]) -> bool:
    """Whether a file is a table of people's ratings; `columns` are the named ones. A file that can't be read is none."""
    from proctor.audits import is_rating_table

    if not path.is_file() or path.suffix.lower() not in core.SHEET_SUFFIXES:
        return False
    return is_rating_table(core.read_sheet(path).columns, columns)


async def import_ratings(
    benchmark: core.Benchmark, path: Path, columns: Mapping[str, Sequence[str]], given: ImportOptions
) -> StoredRuns:
    """Import a table of ratings, with the answers where the table has them, all of it or nothing.

    Ratings become scores by `human:RATER`, dimensions rating dimensions of the benchmark: those that the benchmark, the
    store or the file `dimensions` declares, else with the scale that the ratings show. Raises `InputError` that names
    the row, with a note for each cause of several faults: for an unknown question, an answer that neither the table nor
    the store has, other answers or ratings than the store's, and what `read_ratings` refuses.
    """
    from proctor.audits import read_rating_rows

    tags = {name for item in benchmark.items for name in item.tags}
    known = {item.id for item in benchmark.items}
    rows = read_rating_rows(path, columns, known_items=known, facets=tags, system=given["name"])
    work = _Import(benchmark, path, rows, given)
    work.check()
    if rows.faults:
        raise core.first_fault(path, rows.faults)
    return await work.write()


@dataclass
class _Import:
    """One import: what the table says, beside what the store has. `store` is the one with the benchmark, `runs` and
    `conditions` are those of each system, `new` the answers that the store does not have."""

    benchmark: core.Benchmark
    path: Path
    rows: RatingRows
    given: ImportOptions
    store: Store | None = None
    scheme: core.RatingScheme | None = None
    conditions: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Run | None] = field(default_factory=dict)
    new: dict[_Answer, str] = field(default_factory=dict)

    def check(self) -> None:
        """Adds the faults that come with this benchmark and this store to those of the table."""
        if self.given["answers_only"]:
            self.rows.ratings.clear()
        if self.rows.faults:
            return
        if self.benchmark.numbered:
            expected = "ids of the questions' own, and they have none: --map id=COLUMN names their column"
            self._fault(1, self.rows.columns.item, "ids", expected)
            return
        if not self.rows.ratings and not self.rows.texts:
            self._fault(0, "", "no rating and no answer", "one or more")
        if self.given["name"] and self.rows.columns.system:
            expected = f"none of them beside --name {self.given['name']}"
            self._fault(1, self.rows.columns.system, "systems' names", expected)
        opened = existing_store(self.given["store"])
        self.store = opened if opened is not None and self.benchmark.name in opened.benchmark_names() else None
        self._check_names()
        if self.rows.faults:
            return
        self._check_answers()
        self._check_scheme()
        self._check_ratings()

    def _check_names(self) -> None:
        from proctor.runs import check_given_name

        items, columns = {item.id for item in self.benchmark.items}, self.rows.columns
        example = self.benchmark.items[0].id if self.benchmark.items else ""
        first: dict[str, int] = {}
        of_texts = ((row, item, system) for (item, system), (_, row) in self.rows.texts.items())
        seen = set[tuple[int, str]]()
        for row, item, system in (*of_texts, *((row, one.item, one.system) for row, one in self.rows.ratings)):
            if item not in items and (row, item) not in seen:
                self._fault(row, columns.item, repr(core.printable(item)), f"the id of a question, such as {example!r}")
            seen.add((row, item))
            first.setdefault(system, row)
        named = dict.fromkeys(first, columns.system)
        for row, rating in self.rows.ratings:
            for name, column in ((rating.rater, columns.rater), (rating.dimension, columns.dimension)):
                first.setdefault(name, row)
                named.setdefault(name, column)
        for name, row in first.items():
            try:
                check_given_name(name)
            except core.InputError:
                self._fault(row, named[name], repr(name[:80]), "a name without control characters")
        for system, conditions in self.rows.conditions.items():
            if len(conditions) > 1:
                found = f"ratings of {system!r} under {' and '.join(sorted(conditions))}"
                self._fault(0, columns.condition, found, "one condition in a table")

    def _condition(self, system: str) -> str:
        """The condition of a system's run: as given, else as the table or the store says, else `video`."""
        told = self.given["condition"] or next(iter(self.rows.conditions.get(system, ())), "")
        if told or self.store is None:
            return told or "video"
        there = [run.condition for run in self.store.runs(self.benchmark.name) if run.system == system]
        if len(there) > 1:
            found = f"{system!r} under {', '.join(there)}"
            self._fault(0, "", found, "which of them was rated: --condition NAME")
        return there[0] if there else "video"

    def _check_answers(self) -> None:
        rated: dict[_Answer, int] = {}
        for row, rating in self.rows.ratings:
            rated.setdefault((rating.item, rating.system), row)
        for (item, system), (_, row) in self.rows.texts.items():
            rated.setdefault((item, system), row)
        stored = [] if self.store is None else self.store.runs(self.benchmark.name)
        there = {(run.system, run.condition): run for run in stored}
        self.conditions = {system: self._condition(system) for system in dict.fromkeys(name for _, name in rated)}
        self.runs = {system: there.get((system, condition)) for system, condition in self.conditions.items()}
        known = {system: run for system, run in self.runs.items() if run is not None}
        kept = {system: self.store.answers(run) for system, run in known.items()} if self.store is not None else {}
        for key, row in rated.items():
            self._check_answer(key, row, kept.get(key[1], {}).get(key[0]))

    def _check_answer(self, key: _Answer, row: int, answer: core.Answer | None) -> None:
        """Adds the fault of a rated answer, if it differs from the one in the store, and notes one that is new."""
        item, system = key
        text, text_row = self.rows.texts.get(key, ("", row))
        where = "the store" if self.store is None else self.store.shown
        if answer is None and not text:
            under = f"{system} / {self.conditions[system]}"
            found = f"no answer of {under} to {item!r} in {where} or in the table"
            expected = "a column with the answers (--map candidate=COLUMN), or the answers first: proctor import, "
            self._fault(row, "", found, expected + "proctor run")
        elif answer is None:
            run = self.runs[system]
            if run is not None and run.settings.get("format") != FORM:
                found = f"an answer to {item!r} that {system!r} did not give in {where}"
                expected = "an answer of that run, or another system's name"
                self._fault(text_row, self.rows.columns.candidate, found, expected)
            self.new[key] = text
        elif answer.status is core.Status.FAILED:
            self._fault(row, "", f"a rating of a failed call ({system}, {item!r} in {where})", "one of an answer")
        elif text and text.strip() not in {answer.text.strip(), answer.wording.strip()}:
            found = f"another answer of {system!r} to {item!r} than in {where}"
            self._fault(text_row, self.rows.columns.candidate, found, "the same answer, or another --store")

    def _check_scheme(self) -> None:
        """Decides on the dimensions and their scales."""
        from proctor.audits import seen_scheme
        from proctor.judges.dimensions import read_scheme
        from proctor.runs import refuse_other_scale

        ratings = [rating for _, rating in self.rows.ratings]
        before = None if self.store is None else self.store.card(self.benchmark.name).rating
        file = self.given["dimensions"]
        declared = read_scheme(Path(file)) if file else self.benchmark.rating
        self.scheme = declared if declared or not ratings else seen_scheme(ratings, self.rows.lower, before)
        if self.scheme is not None and self.store is not None:
            refuse_other_scale(self.store, self.benchmark.name, self.scheme)
        known = {dimension.name: dimension for dimension in self.scheme.dimensions} if self.scheme else {}
        for row, rating in self.rows.ratings:
            dimension = known.get(rating.dimension)
            column = self.rows.columns.dimension or rating.dimension
            if dimension is None:
                expected = core.one_of([*known], rating.dimension)
                self._fault(row, self.rows.columns.dimension, repr(rating.dimension), expected)
            elif not dimension.levels[0] <= rating.value <= dimension.levels[-1]:
                expected = f"a number from {dimension.levels[0]:g} to {dimension.levels[-1]:g}"
                self._fault(row, self.rows.columns.value or column, f"{rating.value:g}", expected)
        for name in sorted(self.rows.lower & known.keys()):
            if not known[name].lower_is_better:
                self._fault(
                    0,
                    "",
                    f"{name!r} as a dimension that is better low",
                    "the direction that is declared: higher is better",
                )

    def _check_ratings(self) -> None:
        """Faults of ratings that the store has with another value."""
        if self.store is None:
            return
        rows = {
            system: {(row.item_id, row.metric, row.scorer): row.value for row in self.store.score_rows(run)}
            for system, run in self.runs.items()
            if run is not None
        }
        for row, rating in self.rows.ratings:
            known = rows.get(rating.system, {}).get((rating.item, rating.dimension, core.human(rating.rater)))
            if known is not None and known != rating.value:
                expected = f"{known:g}, as {self.store.shown} has it, or another --store"
                self._fault(row, self.rows.columns.value or rating.dimension, f"{rating.value:g}", expected)

    def _fault(self, row: int, column: str, found: str, expected: str) -> None:
        self.rows.faults.append(core.TableFault(row, column, found, expected))

    async def write(self) -> StoredRuns:
        """Stores the answers and the ratings."""
        from proctor.metrics import code_scorers
        from proctor.runs import declare_ratings, import_systems

        opened, name = open_store(self.given["store"]), self.benchmark.name
        opened.add_benchmark(self.benchmark)
        if self.scheme is not None:
            declare_ratings(opened, name, self.scheme)
        scores = self._scores()
        scorers = code_scorers(self.benchmark)
        runs = []
        for condition in dict.fromkeys(self.conditions.values()):
            recorded = [self._recorded(system, scores) for system, own in self.conditions.items() if own == condition]
            some = [one for one in recorded if one.answers]
            runs += await import_systems(opened, self.benchmark, some, condition=condition, scorers=scorers)
        self._add_to_stored(opened, scores)
        named = {(run.system, run.condition): run for run in opened.runs(name)}
        remember(opened, self.benchmark)
        made = tuple(named[pair] for pair in self.conditions.items())
        return StoredRuns(opened, name, made, None, self._notes(), self._done(opened))

    def _scores(self) -> dict[str, list[core.Score]]:
        found: dict[str, list[core.Score]] = {system: [] for system in self.conditions}
        for _, rating in self.rows.ratings:
            scorer = core.human(rating.rater)
            score = core.Score(item_id=rating.item, metric=rating.dimension, value=rating.value, scorer=scorer)
            found[rating.system].append(score)
        return found

    @cached_property
    def _items(self) -> dict[str, core.Item]:
        return {item.id: item for item in self.benchmark.items}

    @cached_property
    def _sha256(self) -> str:
        from proctor.interchange import file_hash

        return file_hash(self.path)

    @cached_property
    def _new_of(self) -> dict[str, dict[str, str]]:
        """The new answers of each system by item; to be read after `check`."""
        found: dict[str, dict[str, str]] = {}
        for (item, system), text in self.new.items():
            found.setdefault(system, {})[item] = text
        return found

    def _recorded(self, system: str, scores: Mapping[str, Sequence[core.Score]]) -> core.RecordedAnswers:
        """The answers of a system that the store does not have, with their ratings."""
        from proctor.interchange import read_reply

        answers = tuple(read_reply(self._items[item], text) for item, text in self._new_of.get(system, {}).items())
        own = {answer.item_id for answer in answers}
        run = self.runs[system]
        settings = {"recorded": self.path.name, "format": FORM, "sha256": self._sha256}
        if run is not None:
            settings = {key: value for key, value in run.settings.items() if key != "notes"}  # type: ignore[misc]
        ratings = tuple(score for score in scores[system] if score.item_id in own)
        return core.RecordedAnswers(answers, scores=ratings, settings={**settings}, system=system)

    def _add_to_stored(self, store: Store, scores: Mapping[str, Sequence[core.Score]]) -> None:
        pairs = [
            (run, score)
            for system, run in self.runs.items()
            if run is not None
            for score in scores[system]
            if (score.item_id, system) not in self.new
        ]
        store.add_decisions((), pairs)

    def _notes(self) -> tuple[str, ...]:
        raters: dict[str, int] = {}
        for _, rating in self.rows.ratings:
            raters[rating.rater] = raters.get(rating.rater, 0) + 1
        told = ", ".join(f"{name} {count:,}" for name, count in list(raters.items())[:10])
        more = " …" if len(raters) > 10 else ""
        dimensions = {rating.dimension for _, rating in self.rows.ratings}
        scales = [
            f"{one.name} {one.levels[0]:g} to {one.levels[-1]:g}{' (lower is better)' if one.lower_is_better else ''}"
            for one in (self.scheme.dimensions if self.scheme else ())
            if one.name in dimensions
        ]
        seen = self.given["dimensions"] is None and self.benchmark.rating is None
        how = ", as far as the ratings show it (--dimensions FILE declares it)" if seen else ""
        lines = [*self.rows.notes]
        lines += [f"Ratings by {told}{more}"] if told else []
        lines += [f"Scale: {', '.join(scales)}{how}"] if scales else []
        return tuple(lines)

    def _done(self, store: Store) -> tuple[str, ...]:
        lines = []
        ratings = Counter(rating.system for _, rating in self.rows.ratings)
        answers: dict[str, set[str]] = {system: set() for system in self.conditions}
        for item, system in (*((rating.item, rating.system) for _, rating in self.rows.ratings), *self.rows.texts):
            answers[system].add(item)
        for system, condition in self.conditions.items():
            fresh, some = len(self._new_of.get(system, {})), len(answers[system])
            told = f" ({fresh:,} new)" if 0 < fresh < some else ""
            count = f"{core.count_of(some, 'answer')}{told} with {core.count_of(ratings[system], 'rating')}"
            lines.append(f"{count} as {system} / {condition} in {store.shown}")
        return tuple(lines)
