"""The content of an evaluation in one hash, and stores of several machines or institutions merged.

Rows are compared by their content, not by origin, time or cost. No media are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection, RowMapping, delete, insert, select, tuple_, update

from proctor.core import Benchmark, InputError, Item, Judgement, Status, content_hash
from proctor.runs import schema
from proctor.runs.bulk_sql import in_parts, insert_rows
from proctor.runs.database import READING_FAULTS, damaged
from proctor.runs.run_identity import CODE_HASHES, changed_settings, chosen_runs, same_run, with_servers
from proctor.runs.run_leases import claim
from proctor.runs.schema import (
    BenchmarkCard,
    benchmark_row,
    insert_benchmark,
    judgement_row,
    kept_judgements,
    write_card,
)
from proctor.runs.store import Store

_ANSWER = ("status", "text", "parsed", "problem")

_SCORE = ("metric", "scorer", "value", "label", "judgement_key")


@dataclass(frozen=True, slots=True)
class RunContent:
    """The content of one run. `sha256` covers its answers (of failed ones only the status) and scores."""

    system: str
    condition: str
    answers: int
    failed: int
    scores: int
    sha256: str


@dataclass(frozen=True, slots=True)
class EvaluationContent:
    """The content of some runs of a benchmark, with the judgements of their scores.

    `sha256` covers the items, the answers (text, parsed value, status), the scores and the judgements, by system and
    condition. It does not depend on times, tokens, cost, servers, settings, machines and the order of rows.
    """

    benchmark: str
    items: int
    judgements: int
    runs: tuple[RunContent, ...]
    sha256: str

    def to_json(self) -> dict[str, JsonValue]:
        """The fields as plain data."""
        return {"sha256": self.sha256, **asdict(self), "runs": [asdict(run) for run in self.runs]}


def evaluation_content(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> EvaluationContent:
    """The content of these runs of a benchmark (none named: all). Raises `InputError` for unknown names, and for a damaged
    row."""
    fingerprint = store.fingerprint(benchmark)
    found, behind = [], set[str]()
    with store.reading() as connection:
        names = item_names(connection, benchmark)
        for run in sorted(
            chosen_runs(store, benchmark, systems, conditions), key=lambda one: (one.system, one.condition)
        ):
            answers, failed, scores = [], 0, []
            for row in answer_rows(connection, run.id):
                answers.append(answer_digest(_answer_key(names, row), row))
                failed += row["status"] == Status.FAILED.value
            for row in score_rows(connection, run.id):
                scores.append(score_digest(_answer_key(names, row), row))
                behind |= {row["judgement_key"]} - {""}
            sha256 = _of([*answers, *scores])
            found.append(RunContent(run.system, run.condition, len(answers), failed, len(scores), sha256))
        judgements = [judgement_digest(judgement) for judgement in kept_judgements(connection, behind)]
    runs: list[JsonValue] = [[run_content.system, run_content.condition, run_content.sha256] for run_content in found]
    whole = content_hash({"items": fingerprint, "runs": runs, "judgements": _of(judgements)})
    return EvaluationContent(benchmark, len(names), len(judgements), tuple(found), whole)


def item_names(connection: Connection, benchmark: str) -> dict[int, str]:
    """The item ids of a benchmark by number."""
    table, own = schema.items, schema.benchmarks
    query = select(table.c.id, table.c.item).join(own, own.c.id == table.c.benchmark).where(own.c.name == benchmark)
    return {row.id: row.item for row in connection.execute(query)}


def answer_rows(connection: Connection, run: int) -> Iterable[RowMapping]:
    query = select(schema.answers).where(schema.answers.c.run == run).execution_options(yield_per=1000)
    return connection.execute(query).mappings()


def score_rows(connection: Connection, run: int) -> Iterable[RowMapping]:
    query = select(schema.scores).where(schema.scores.c.run == run).execution_options(yield_per=1000)
    return connection.execute(query).mappings()


AnswerKey = tuple[str, int]
"""What a run's answer belongs to: the item's id, and the repetition."""


def answer_digest(key: AnswerKey, row: RowMapping | Mapping[str, Any]) -> str:
    """The hash of an answer's content; of a failed one only the status, since reasons depend on the machine."""
    failed = row["status"] == _FAILED
    return content_hash(["answer", *key, *([_FAILED] if failed else [row[name] for name in _ANSWER])])


def score_digest(key: AnswerKey, row: RowMapping | Mapping[str, Any]) -> str:
    """The hash of a score's content."""
    return content_hash(["score", *key, *(row[name] for name in _SCORE)])


def _answer_key(names: Mapping[int, str], row: RowMapping | Mapping[str, Any]) -> AnswerKey:
    return names[row["item"]], row["repetition"]


def _shown_key(key: AnswerKey) -> str:
    """
    >>> _shown_key(("q1", 0)), _shown_key(("q1", 2))
    ('item q1', 'item q1, repetition 2')
    """
    return f"item {key[0]}, repetition {key[1]}" if key[1] else f"item {key[0]}"


def judgement_digest(judgement: Judgement) -> str:
    """The hash of a judgement's content, without its cost."""
    return content_hash(judgement.model_dump(mode="json", exclude={"usage"}))


def _of(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


ITEMS, SETTINGS, ANSWERS, SCORES, JUDGEMENTS = "items", "settings", "answers", "scores", "judgements"

_FAILED = Status.FAILED.value


Row = dict[str, Any]

RunLocation = tuple[str, str, str]
"""Benchmark, system and condition."""

ScoreKey = tuple[AnswerKey, str, str]
"""An answer, a metric and a scorer."""

RunName = tuple[str, str]


@dataclass(slots=True)
class MergedRows:
    """The result for one kind of rows, by run if they belong to one: `taken` are new in the target, `same` were there
    already, `refused` contradict the target or another source. `first` is the reason of the first refusal."""

    benchmark: str
    system: str
    condition: str
    what: str
    taken: int = 0
    same: int = 0
    refused: int = 0
    first: str = ""

    def refuse(self, why: str, count: int = 1) -> None:
        self.refused += count
        self.first = self.first or why

    def to_json(self) -> dict[str, JsonValue]:
        """The fields as plain data."""
        return asdict(self)


def merge_stores(target: Store, sources: Sequence[Store]) -> list[MergedRows]:
    """Adds the sources' benchmarks, runs, answers, scores and judgements to the target, in one transaction.

    Rows are the same if their content is (see `evaluation_content`), whatever their origin and cost. A failed answer is
    replaced by one that did not fail. Contradictions are refused: two answers to one item, two values of one score, two
    replies under one key, other items under a benchmark's name, other settings under a run's or a scorer's name. The
    target's row then stays, and no contradicting source is taken, so that the order of sources does not matter.

    Raises `InputError` if a store is named twice, another process is at work on a run, or a row is damaged.
    """
    shown = [target.shown, *(source.shown for source in sources)]
    twice = next((one for one in shown if shown.count(one) > 1), None)
    if twice is not None:
        raise InputError(twice, found="the store twice", expected="each store once")
    with ExitStack() as stack:
        sides = [_Side(source.shown, stack.enter_context(source.reading())) for source in sources]
        with target.writing() as connection:
            return _Merge(_Side(target.shown, connection), sides).rows()


@dataclass(frozen=True)
class _Side:
    """One of the stores. Rows that can't be read raise an `InputError` that names the store."""

    shown: str
    connection: Connection

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        try:
            yield
        except READING_FAULTS as error:
            raise damaged(self.shown, error) from error

    def benchmark_names(self) -> list[str]:
        return list(self.connection.scalars(select(schema.benchmarks.c.name)))

    def benchmark(self, name: str) -> Row | None:
        with self._decoding():
            row = benchmark_row(self.connection, name)
            return None if row is None else dict(row) | {"card": BenchmarkCard.model_validate(row["card"])}

    def items(self, benchmark: int) -> tuple[Item, ...]:
        table = schema.items
        query = select(table.c.body).where(table.c.benchmark == benchmark).order_by(table.c.position)
        with self._decoding():
            return tuple(Item.model_validate_json(body) for body in self.connection.scalars(query))

    def runs(self, benchmark: int) -> dict[RunName, Row]:
        query = select(schema.runs).where(schema.runs.c.benchmark == benchmark)
        rows = self.connection.execute(query).mappings()
        with self._decoding():
            return {(row["system"], row["condition"]): dict(row) for row in rows}

    def judgements(self) -> Iterator[Judgement]:
        with self._decoding():
            for body in self.connection.scalars(select(schema.judgements.c.body).execution_options(yield_per=1000)):
                yield Judgement.model_validate_json(body)

    def answers(self, benchmark: str, run: int) -> dict[AnswerKey, Row]:
        with self._decoding():
            names = item_names(self.connection, benchmark)
            return {_answer_key(names, row): dict(row) for row in answer_rows(self.connection, run)}

    def scores(self, benchmark: str, run: int) -> dict[ScoreKey, Row]:
        with self._decoding():
            names = item_names(self.connection, benchmark)
            rows = score_rows(self.connection, run)
            return {(_answer_key(names, row), row["metric"], row["scorer"]): dict(row) for row in rows}

    def single_scores(self, benchmark: str, run: int) -> list[tuple[ScoreKey, Row]]:
        """The rows behind the means over a judge's repetitions, each with the key of its mean."""
        table = schema.judge_scores
        query = select(table).where(table.c.run == run).execution_options(yield_per=1000)
        with self._decoding():
            names = item_names(self.connection, benchmark)
            rows = self.connection.execute(query).mappings()
            return [((_answer_key(names, row), row["metric"], row["scorer"]), dict(row)) for row in rows]


@dataclass
class _Merge:
    into: _Side
    sources: Sequence[_Side]
    contradicted: set[str] = field(default_factory=set)
    """Keys of judgements with different replies."""
    mixed: set[str] = field(default_factory=set)
    """Names of scorers with different settings, of the current benchmark."""

    def rows(self) -> list[MergedRows]:
        found = [self._judgements()]
        for name in sorted({name for source in self.sources for name in source.benchmark_names()}):
            found += self._benchmark(name)
        return [merged_rows for merged_rows in found if merged_rows.taken or merged_rows.same or merged_rows.refused]

    def _judgements(self) -> MergedRows:
        result = MergedRows("", "", "", JUDGEMENTS)
        kept = {judgement.key: judgement_digest(judgement) for judgement in self.into.judgements()}
        offered: dict[str, dict[str, Judgement]] = {}
        for judgement in (judgement for source in self.sources for judgement in source.judgements()):
            offered.setdefault(judgement.key, {}).setdefault(judgement_digest(judgement), judgement)
        new = []
        for key, found in offered.items():
            if len(found.keys() | {kept.get(key, next(iter(found)))}) > 1:
                self.contradicted.add(key)
                result.refuse(f"{key[:12]}: different replies under one key", len(found.keys() - {kept.get(key)}))
            elif key in kept:
                result.same += 1
            else:
                new += [judgement_row(judgement) for judgement in found.values()]
        result.taken = len(new)
        insert_rows(self.into.connection, schema.judgements, new)
        return result

    def _benchmark(self, name: str) -> list[MergedRows]:
        result, kept = MergedRows(name, "", "", ITEMS), self.into.benchmark(name)
        having = [(source, row) for source in self.sources if (row := source.benchmark(name)) is not None]
        prints = {row["fingerprint"] for _, row in having} if kept is None else {kept["fingerprint"]}
        fits = [(source, row) for source, row in having if prints == {row["fingerprint"]}]
        if len(fits) < len(having):
            result.refuse("other items under the same name", len(having) - len(fits))
        if not fits:
            return [result]
        cards = [*([kept["card"]] if kept else []), *(row["card"] for _, row in fits)]
        card, self.mixed = _joined(kept["card"] if kept else None, [row["card"] for _, row in fits]), _mixed(cards)
        if kept is None:
            items = fits[0][0].items(fits[0][1]["id"])
            result.taken = len(items)
            whole = Benchmark(name=name, title=card.title, items=items, metrics=card.metrics, headline=card.headline)
            insert_benchmark(self.into.connection, whole, prints.pop(), card.model_dump(mode="json"))
            kept = self.into.benchmark(name) or {}
        else:
            write_card(self.into.connection, kept["id"], card)
        rows, runs = [result], self.into.runs(kept["id"])
        parts: dict[RunName, list[tuple[_Side, Row]]] = {}
        for source, row in fits:
            for key, run in source.runs(row["id"]).items():
                parts.setdefault(key, []).append((source, run))
        for key in sorted(parts):
            rows += self._run((name, *key), kept["id"], runs.get(key), parts[key])
        return rows

    def _run(
        self, name: RunLocation, benchmark: int, kept: Row | None, having: Sequence[tuple[_Side, Row]]
    ) -> list[MergedRows]:
        result = MergedRows(*name, SETTINGS)
        first = max(
            (run["settings"] for _, run in having), key=lambda one: CODE_HASHES in one
        )  # imported runs have none
        settings = first if kept is None else kept["settings"]
        odd = [run["settings"] for _, run in having if not same_run(run["settings"], settings)]
        if odd:
            result.refuse(changed_settings(settings, odd[0]), len(having) if kept is None else len(odd))
        fits = [(source, run) for source, run in having if same_run(run["settings"], settings)]
        if not fits or (odd and kept is None):
            return [result]
        for _, run in fits:
            settings = with_servers(settings, run["settings"])
        begun = min(run["created"] for run in [*(run for _, run in fits), *([kept] if kept else [])])
        number = self._begin(kept, benchmark, name[1:], {"settings": settings, "created": begun})
        parts = [(source, run["id"]) for source, run in fits]
        merge = _RunMerge(name, self.into, number, parts, self.contradicted, self.mixed)
        return [result, *merge.rows()]

    def _begin(self, kept: Row | None, benchmark: int, key: RunName, values: Mapping[str, Any]) -> int:
        """Writes the run's `values` (settings; created: the earliest beginning of its parts); its number."""
        table, into = schema.runs, self.into.connection
        if kept is not None:
            claim(into, [kept["id"]], self.into.shown)
            into.execute(update(table).where(table.c.id == kept["id"]).values(**values))
            return int(kept["id"])
        names = {"benchmark": benchmark, "system": key[0], "condition": key[1]}
        new = insert(table).values(**names, **values).returning(table.c.id)
        return int(into.execute(new).scalar_one())


@dataclass
class _RunMerge:
    """One run of the target (by number), and the runs of the same name and settings in the sources."""

    name: RunLocation
    into: _Side
    number: int
    parts: Sequence[tuple[_Side, int]]
    contradicted: set[str]
    mixed: set[str]

    def rows(self) -> list[MergedRows]:
        benchmark = self.name[0]
        numbers = {name: number for number, name in item_names(self.into.connection, benchmark).items()}
        answers = [source.answers(benchmark, run) for source, run in self.parts]
        result, settled = self._answers(answers, numbers)
        scores = MergedRows(*self.name, SCORES)
        kept = {key: score_digest(key[0], row) for key, row in self.into.scores(benchmark, self.number).items()}
        offered: dict[ScoreKey, dict[str, Row]] = {}
        for (source, run), own in zip(self.parts, answers, strict=True):
            digests = {key: answer_digest(key, row) for key, row in own.items()}
            for key, row in source.scores(benchmark, run).items():
                answer, _, scorer = key
                if digests.get(answer) != settled.get(answer):
                    scores.refuse(f"{_shown_key(answer)}: a score of another answer")
                elif row["judgement_key"] in self.contradicted:
                    scores.refuse(f"{_shown_key(answer)}: a score by a judgement that is refused")
                elif scorer in self.mixed and kept.get(key) != score_digest(answer, row):
                    scores.refuse(f"{_shown_key(answer)}: a score by {scorer} with other settings")
                else:
                    offered.setdefault(key, {}).setdefault(score_digest(answer, row), row)
        new = []
        for key, found in offered.items():
            answer, metric, scorer = key
            if _fits(scores, f"{_shown_key(answer)}: another {metric} by {scorer}", kept.get(key), found):
                new += [row | {"run": self.number, "item": numbers[answer[0]]} for row in found.values()]
        insert_rows(self.into.connection, schema.scores, new)
        self._single_scores(offered, kept, numbers)
        return [result, scores]

    def _single_scores(
        self, offered: Collection[ScoreKey], kept: Collection[ScoreKey], numbers: Mapping[str, int]
    ) -> None:
        """Adds what is behind the means that were taken: those that the target had keep their own."""
        benchmark, table, added = self.name[0], schema.judge_scores, dict[Any, Row]()
        now = self.into.scores(benchmark, self.number)
        for source, run in self.parts:
            given = source.scores(benchmark, run)
            for key, row in source.single_scores(benchmark, run):
                taken = key in offered and key not in kept and key in now
                if taken and score_digest(key[0], now[key]) == score_digest(key[0], given[key]):
                    added.setdefault(
                        (key, row["judge_repetition"]), row | {"run": self.number, "item": numbers[key[0][0]]}
                    )
        insert_rows(self.into.connection, table, list(added.values()))

    def _answers(
        self, parts: Sequence[Mapping[AnswerKey, Row]], numbers: Mapping[str, int]
    ) -> tuple[MergedRows, dict[AnswerKey, str]]:
        """The result for answers, and the digest of each of the target's answers now."""
        result = MergedRows(*self.name, ANSWERS)
        own = self.into.answers(self.name[0], self.number)
        kept = {key: answer_digest(key, row) for key, row in own.items()}
        settled = {key: kept[key] for key, row in own.items() if row["status"] != _FAILED}
        offered: dict[AnswerKey, dict[str, Row]] = {}
        for key, row in (pair for part in parts for pair in part.items()):
            offered.setdefault(key, {}).setdefault(answer_digest(key, row), row)
        new = []
        for key, found in offered.items():
            given = {digest: row for digest, row in found.items() if row["status"] != _FAILED}
            if not given and key in kept:  # the sources have only failed answers
                result.same += kept[key] in found
            elif _fits(result, f"{_shown_key(key)}: another answer", settled.get(key), given or found):
                ((kept[key], row),) = (given or found).items()
                new.append(row | {"run": self.number, "item": numbers[key[0]]})
        table = schema.answers
        failed = (table.c.run == self.number) & (table.c.status == _FAILED)
        for gone in in_parts([(row["item"], row["repetition"]) for row in new]):
            replaced = tuple_(table.c.item, table.c.repetition).in_(gone)
            self.into.connection.execute(delete(table).where(failed, replaced))
        insert_rows(self.into.connection, table, new)
        return result, kept


def _fits(result: MergedRows, why: str, kept: str | None, found: Mapping[str, Row]) -> bool:
    """Whether to take what the sources have (by digest); otherwise counts it as the same, or as refused."""
    others = len(found.keys() - {kept})
    if kept is None and others == 1:
        result.taken += 1
        return True
    result.same += kept in found
    if others:
        result.refuse(why, others)
    return False


def _joined(kept: BenchmarkCard | None, cards: Sequence[BenchmarkCard]) -> BenchmarkCard:
    """The target's card, or a source's without its folders, with all metrics, scorers and rulings."""
    known = sorted(cards, key=lambda benchmark_card: benchmark_card.model_dump_json())
    card = known[0].model_copy(update={"folders": {}}) if kept is None else kept
    rulings = list(card.rulings)
    for benchmark_card in known:
        card = card.with_metrics(benchmark_card.metrics)
        rulings += [ruling for ruling in benchmark_card.rulings if ruling not in rulings]
    scorers = {name: settings for benchmark_card in (*known, card) for name, settings in benchmark_card.scorers.items()}
    gives = {name: metrics for benchmark_card in (*known, card) for name, metrics in benchmark_card.gives.items()}
    return card.model_copy(update={"rulings": tuple(rulings), "scorers": scorers, "gives": gives})


def _mixed(cards: Sequence[BenchmarkCard]) -> set[str]:
    """The scorers with different settings in two stores."""
    names = {name for card in cards for name in card.scorers}
    offered = {name: [card.scorers[name] for card in cards if name in card.scorers] for name in names}
    return {
        name
        for name, settings in offered.items()
        if not all(same_run(one, other) for one in settings for other in settings)
    }
