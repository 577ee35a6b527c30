"""Answers that a judge left without a verdict: written to a file, decided by a person, and read back.

A decision is a score under the judge's name, so that its series is complete. The person's judgement, with value, reason and
time, is stored with it. A later decision replaces the score; its judgement refers to the former one, which is kept.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor import core
from proctor.judges import UNRESOLVED, asked_metrics, decided_by, decided_scores, decided_values, is_decided
from proctor.runs.run_identity import chosen_runs
from proctor.runs.schema import BenchmarkCard
from proctor.runs.store import Run, Store

_KEY = ("item", "repetition", "system", "condition", "judge", "metric")
_OF_ANSWER = 5  # of these say which answer and judge
_ABOUT = ("question", "reference", "answer", "state", "values", "answer_id")
_FILLED = ("value", "reason")
_MAX_CELL = 30_000  # characters; spreadsheets cut at 32,767


@dataclass(frozen=True)
class OpenAnswer:
    """One metric of an answer that a judge left without a verdict (`state` says why), or that a person has decided: then
    `judgement_key` is the key of the decision."""

    run: Run
    item: core.Item
    answer: core.Answer
    judge: str
    metric: core.Metric
    state: str
    values: str
    judgement_key: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The cells that identify it in a file."""
        number = str(self.answer.repetition)
        names = (self.item.id, number, self.run.system, self.run.condition, self.judge, self.metric.name)
        return tuple(str(core.safe_cell(name)) for name in names)

    @property
    def answer_id(self) -> str:
        """A hash of the text, to detect another answer; spreadsheets do not change its format."""
        return f"a-{core.content_hash(self.answer.text)[:16]}"

    def cells(self) -> list[str]:
        """Its row in a file, with empty decision."""
        reference = self.item.reference
        keys = (reference.answer, *reference.accepted) if reference is not None and self.item.has_answer else ()
        right = [
            *map(str, keys),
            *(
                f"{criterion.points:+g}: {criterion.criterion}"
                for criterion in (reference.criteria if reference else ())
            ),
        ]
        why = "" if reference is None else reference.rationale
        own = self.answer.extra.get("rationale")
        about = (
            self.item.question,
            "\n".join([" | ".join(right), *([f"Rationale: {why}"] if why else [])]),
            "\n".join([self.answer.wording, *([f"Rationale: {own}"] if isinstance(own, str) else [])]),
            self.state,
            self.values,
            self.answer_id,
        )
        return [*self.key, *(str(core.safe_cell(_cut(text))) for text in about), "", ""]


@dataclass(frozen=True)
class DecisionCounts:
    """Numbers of answers: decided, decided again among these, unchanged, and still open in the benchmark (`left`)."""

    answers: int
    again: int
    unchanged: int
    left: int


def open_answers(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = (), *, decided: bool = False
) -> list[OpenAnswer]:
    """The unresolved answers of the chosen runs, one entry per metric, by run, judge and item; with `decided` also those
    that a person has decided.

    Raises `InputError` for an unknown system or condition, and for a judge without any verdict on the benchmark, whose
    metrics are therefore unknown.
    """
    found, silent = _listed(store, benchmark, chosen_runs(store, benchmark, systems, conditions), decided=decided)
    if silent:
        raise core.InputError(
            store.shown,
            f"judge {min(silent)}",
            found=f"no verdict on any answer of {benchmark}",
            expected="one at least, which tells its metrics",
        )
    return found


def _given(store: Store, benchmark: str) -> dict[str, set[str]]:
    """The scorers of a benchmark's answers, each with the metrics that it has given or declared."""
    gives = store.card(benchmark).gives
    return {name: found.union(gives.get(name, ())) for name, found in store.scorers(benchmark).items()}


def _listed(store: Store, benchmark: str, runs: Sequence[Run], *, decided: bool) -> tuple[list[OpenAnswer], set[str]]:
    """The entries of these runs, and the judges whose metrics are unknown."""
    card, items = store.card(benchmark), store.items(benchmark)
    given = _given(store, benchmark)
    found: list[OpenAnswer] = []
    silent = set()
    for run in runs:
        for number in store.repetitions(run):
            every = _states(store, run, number)
            states = {key: label for key, (value, label) in every.items() if value == 1 or decided}
            answers = store.answers(run, number) if states else {}
            given_of = _scores_given(store, run, states, number)
            for judge in sorted({judge for judge, _ in states}):
                metrics = [card.metric(name) for name in asked_metrics(judge, given[judge])]
                if not metrics:
                    silent.add(judge)
                asked = [(item, metric) for item in items for metric in metrics if (judge, item.id) in states]
                for item, metric in asked:
                    key = given_of.get((judge, item.id, metric.name), "")
                    if key is not None and metric.scores(item.answer.kind, item.tags.get("language")):
                        state, values = states[judge, item.id], _values_text(metric, card)
                        found.append(OpenAnswer(run, item, answers[item.id], judge, metric, state, values, key))
    return found, silent


def write_open(
    store: Store,
    benchmark: str,
    out: Path,
    systems: Sequence[str] = (),
    conditions: Sequence[str] = (),
    *,
    decided: bool = False,
) -> int:
    """Writes the open answers (see `open_answers`) to a CSV file with empty columns `value` and `reason`; returns the
    number of rows. A text that a spreadsheet would take for a formula gets a leading apostrophe.

    Raises `InputError` if the file exists (it may hold decisions) or can't be written.
    """
    rows = open_answers(store, benchmark, systems, conditions, decided=decided)
    _by_key(rows)
    if out.exists():
        raise core.InputError(out, found="a file, which may hold decisions", expected="a new name")
    with core.whole_file(out) as draft, draft.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow([*_KEY, *_ABOUT, *_FILLED])
        writer.writerows(row.cells() for row in rows)
    return len(rows)


def decide(store: Store, benchmark: str, file: Path, *, by: str, at: str) -> DecisionCounts:
    """Stores the decisions of a file by `write_open`: all, or none if the file has an error. `by` is the person, `at` the
    time in UTC (ISO 8601). Rows without value and reason stay open.

    A filled row of a decided answer decides it again. Raises `InputError`, with the row, for an unknown item, run or
    judge, an answer that is not open or has changed, an invalid value, a value without a reason, a repeated decision,
    and a decision on some metrics of an answer only.
    """
    person = _person(by)
    card = store.card(benchmark)
    runs = store.runs(benchmark)
    known = _by_key(_listed(store, benchmark, runs, decided=True)[0])
    rows = _filled(file)
    chosen: dict[tuple[str, ...], tuple[core.TableRow, OpenAnswer]] = {}
    for row in rows:
        one = _open_one(row, known, store, benchmark, file)
        if one.key in chosen:
            found = f"a decision, as in row {chosen[one.key][0].number}"
            raise core.InputError(file, f"row {row.number}", found=found, expected="each answer once")
        chosen[one.key] = (row, one)
    _check_whole(chosen, known, file)
    former = store.judgements(one.judgement_key for _, one in chosen.values() if one.judgement_key)
    judgements: list[core.Judgement] = []
    scores: list[tuple[Run, core.Score]] = []
    unchanged, again = set(), set()
    given = _given(store, benchmark)
    for row, one in chosen.values():
        answer = (one.run.id, one.item.id, one.answer.repetition, one.judge)
        before = former.get(one.judgement_key)
        judgement = _judgement(row, one, person, at)
        if before is not None and _same(before, judgement):
            unchanged.add(answer)
            continue
        if before is not None:
            again.add(answer)
        judgements.append(judgement)
        own = given[one.judge] - {UNRESOLVED.name}
        scores += [
            (one.run, score)
            for score in _scores(row, one, card, judgement, file)
            if not own or score.metric in {*own, UNRESOLVED.name}
        ]
    store.add_decisions(judgements, scores)
    written = {(run.id, score.item_id, score.repetition, score.scorer) for run, score in scores}
    states = [_states(store, run, number) for run in runs for number in store.repetitions(run)]
    left = sum(value == 1 for some in states for value, _ in some.values())
    return DecisionCounts(len(written), len(again), len(unchanged - written), left)


def _scores(
    row: core.TableRow, open_answer: OpenAnswer, card: BenchmarkCard, judgement: core.Judgement, file: Path
) -> Iterator[core.Score]:
    """The scores of a decision under the judge's name, and the score that says that the answer is resolved."""
    value = _normalised(row.cells["value"])
    keys: dict[str, Any] = {"item_id": open_answer.item.id, "scorer": open_answer.judge, "judgement_key": judgement.key}
    number = open_answer.answer.repetition
    scores = decided_scores(open_answer.metric, value, card.rating, **keys)
    if not scores:
        location = f"row {row.number}, column 'value'"
        raise core.InputError(file, location, found=repr(row.cells["value"]), expected=open_answer.values)
    yield from (score.model_copy(update={"repetition": number}) for score in scores)
    label = decided_by(judgement.judge.removeprefix(core.HUMAN))
    yield core.Score(metric=UNRESOLVED.name, value=0.0, label=label, repetition=number, **keys)


def _judgement(row: core.TableRow, open_answer: OpenAnswer, person: str, at: str) -> core.Judgement:
    reply: dict[str, Any] = {
        "value": _normalised(row.cells["value"]),
        "reason": core.collapse_spaces(row.cells["reason"]),
        "at": at,
        "metric": open_answer.metric.name,
        "instead_of": open_answer.judge,
        "system": open_answer.run.system,
        "condition": open_answer.run.condition,
    }
    if open_answer.answer.repetition:
        reply["repetition"] = open_answer.answer.repetition
    if open_answer.judgement_key:
        reply["replaces"] = open_answer.judgement_key
    key = core.content_hash({"decision": reply, "by": person, "item": open_answer.item.id, "run": open_answer.run.id})
    return core.Judgement(key=key, judge=core.human(person), item_id=open_answer.item.id, reply=reply)


def _same(before: core.Judgement, now: core.Judgement) -> bool:
    return before.judge == now.judge and all(before.reply[name] == now.reply[name] for name in _FILLED)


def _filled(file: Path) -> list[core.TableRow]:
    """The rows with a decision."""
    rows = core.read_table(file, [*_KEY, "answer_id", *_FILLED], lenient=True).checked(file)
    filled = []
    for row in rows:
        value, reason = (row.cells[name].strip() for name in _FILLED)
        if bool(value) != bool(reason):
            column, found = ("reason", "a value without a reason") if value else ("value", "a reason alone")
            location = f"row {row.number}, column {column!r}"
            raise core.InputError(file, location, found=found, expected="value and reason, or neither")
        if value:
            filled.append(row)
    if not filled:
        raise core.InputError(
            file,
            "column 'value'",
            found=f"nothing in {core.count_of(len(rows), 'row')}",
            expected="one decision or more",
        )
    return filled


def _open_one(
    row: core.TableRow, known: dict[tuple[str, ...], OpenAnswer], store: Store, benchmark: str, file: Path
) -> OpenAnswer:
    """The open answer of a row."""
    key = tuple(row.cells[name] for name in _KEY)
    if key not in known:
        raise _unknown(row, known, store, benchmark, file)
    one = known[key]
    if row.cells["answer_id"].strip() != one.answer_id:
        location = f"row {row.number}, column 'answer_id'"
        found = f"{row.cells['answer_id']!r}, another answer"
        raise core.InputError(file, location, found=found, expected=f"{one.answer_id}, the one in the store")
    return one


def _unknown(
    row: core.TableRow, known: dict[tuple[str, ...], OpenAnswer], store: Store, benchmark: str, file: Path
) -> core.InputError:
    """The error for a row without an open answer: the first unknown name, if any."""
    runs = store.runs(benchmark)
    given = _given(store, benchmark)
    choices: dict[str, set[str]] = {
        "item": {item.id for item in store.items(benchmark)},
        "repetition": {str(number) for run in runs for number in store.repetitions(run)},
        "system": {run.system for run in runs},
        "condition": {run.condition for run in runs},
        "judge": set(given),
        "metric": {name for names in given.values() for name in names}
        | {open_answer.metric.name for open_answer in known.values()},
    }
    for column, found in ((column, row.cells[column]) for column in _KEY):
        names = sorted(str(core.safe_cell(name)) for name in choices[column])
        if found not in names:
            shown = core.one_of(names, found) if len(names) <= 20 else f"a known {column}"
            return core.InputError(file, f"row {row.number}, column {column!r}", found=repr(found), expected=shown)
    return core.InputError(
        file, f"row {row.number}", found="an answer that is not open", expected="one without a verdict"
    )


def _check_whole(
    chosen: dict[tuple[str, ...], tuple[core.TableRow, OpenAnswer]],
    known: dict[tuple[str, ...], OpenAnswer],
    file: Path,
) -> None:
    """Raises `InputError` for an open answer that is decided on some metrics of its judge only."""
    undecided = defaultdict(list)
    for open_answer in known.values():
        if open_answer.key not in chosen and not open_answer.judgement_key:
            undecided[open_answer.key[:_OF_ANSWER]].append(open_answer.metric.name)
    for key, (row, _) in chosen.items():
        if lacking := undecided.get(key[:_OF_ANSWER]):
            found = f"no decision on {', '.join(lacking)}"
            raise core.InputError(file, f"row {row.number}", found=found, expected="all metrics of the answer")


def _by_key(rows: Sequence[OpenAnswer]) -> dict[tuple[str, ...], OpenAnswer]:
    found: dict[tuple[str, ...], OpenAnswer] = {}
    for row in rows:
        if row.key in found:  # "=a" is written as "'=a", which is a name, too
            raise core.InputError(f"item {row.item.id!r}", found="a name that is written like another's")
        found[row.key] = row
    return found


def _states(store: Store, run: Run, repetition: int) -> dict[tuple[str, str], tuple[float, str]]:
    """By judge and item, of one repetition: open (1) or decided by a person (0), with the label."""
    rows = store.score_rows(run, metric=UNRESOLVED.name, repetition=repetition)
    return {
        (row.scorer, row.item_id): (row.value, row.label) for row in rows if row.value == 1 or is_decided(row.label)
    }


def _scores_given(
    store: Store, run: Run, states: Collection[tuple[str, str]], repetition: int
) -> dict[tuple[str, str, str], str | None]:
    """The scores of these answers by judge, item and metric: the key of the person's judgement, or None for a score by the judge
    itself, which a person can't overrule."""
    judges = sorted({judge for judge, _ in states})
    rows = (row for judge in judges for row in store.score_rows(run, scorer=judge, repetition=repetition))
    found = [row for row in rows if (row.scorer, row.item_id) in states]
    judgements = store.judgements(row.judgement_key for row in found if row.judgement_key)
    people = {key for key, judgement in judgements.items() if judgement.judge.startswith(core.HUMAN)}
    return {
        (row.scorer, row.item_id, row.metric): row.judgement_key if row.judgement_key in people else None
        for row in found
    }


def _values_text(metric: core.Metric, card: BenchmarkCard) -> str:
    """The values that a person may give, in words."""
    named = decided_values(metric, card.rating)
    return f"one of: {'; '.join(named)}" if named else f"a number from {metric.low:g} to {metric.high:g}"


def _person(by: str) -> str:
    plain = core.collapse_spaces(by).removeprefix(core.HUMAN)
    if not plain or not plain.isprintable():
        raise core.InputError("--by", found=repr(by), expected="the name of the person who decided")
    return plain


def _normalised(value: str) -> str:
    return core.collapse_spaces(value).casefold()


def _cut(text: str) -> str:
    more = len(text) - _MAX_CELL
    return text if more <= 0 else f"{text[:_MAX_CELL]} … ({core.count_of(more, 'more character')})"
