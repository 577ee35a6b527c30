"""Read-only tools over one store, as plain functions: what `proctor mcp` serves.

A text in a store may be hostile: an answer that a model wrote, a question of somebody's benchmark, a server's error. An
agent that reads it may take it for an instruction. So the tools give metadata alone (names, counts, scores, intervals,
statuses), unless the person who starts them allows contents, which then stand in fields named `untrusted`. No argument of a
tool allows them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from proctor import api
from proctor.core import InputError, ProctorError, UsageError, clean, one_of, shorten
from proctor.shell import ExplainOptions, explained_gap, explained_sides, filled, gap_runs, name_in

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.results import GivenAnswer, RunDifference
    from proctor.runs import RunStatus, Store

MOST_ROWS = 200
"""Rows of one reply; the others are counted in `left_out`."""

_NAME = 120  # characters of a name
_OWN_WORDS = re.compile(
    r"(?:stopped(?: at \S+, --max-cost \S+| after [\d.]+ s \(--max-time\))?|interrupted|its process is gone"
    r"|gave up after \d+ (?:failures?|errors? of the system) in a row)"
)
"""Why a session ended, in Proctor's words alone; what follows quotes a server or a system."""

_PLAIN = re.compile(
    r"-?[\d.,e+-]{1,30}(?: to [\d.]{1,30}| words?| \(\d+ (?:alone|missing)\))?|true|false|null|none|recorded|not recorded"
    r"|(?:hash )?[0-9a-f]{8}"
)
"""Values of a setting that hold no text: numbers, ranges, hashes, and Proctor's words for none."""

_NAMED_KINDS = {"items", "missing", "reader", "judge", "model", "condition"}
"""Kinds of differences between runs whose values are counts and names."""

_NAME_OF_SETTING = re.compile(r"[A-Za-z_][\w.-]{0,39}")

_DRAWS = 2000


class StoreTools:
    """The tools over a store. With `contents`, questions, references, answers and judges' replies are given as well.

    Each returns plain data. Raises `ProctorError`, whose message quotes no content of the store.
    """

    def __init__(self, store: Store, *, contents: bool = False) -> None:
        self._store = store
        self._contents = contents

    def runs(self, benchmark: str = "") -> dict[str, Any]:
        """All runs of the store, or of one benchmark: how many answers each has and wants, failures, cost, and whether it is
        running, paused, waiting, complete, stopped or recorded (imported). Begin here: the names are those that the other
        tools take."""
        found = api.status(self._store, benchmark)
        cards = {name: self._store.card(name) for name in self._store.benchmark_names()}
        benchmarks = [
            {"name": _short(name), "headline_metric": card.headline, "metrics": [one.name for one in card.metrics][:50],
             "facets": [_short(one) for one in card.facets][:50]}
            for name, card in cards.items()
        ]  # fmt: skip
        return {"benchmarks": benchmarks} | _cut("runs", [self._status(one) for one in found])

    def results(
        self,
        benchmark: str,
        metrics: Sequence[str] = (),
        systems: Sequence[str] = (),
        conditions: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The mean of each metric of each run, with its 95 % interval over groups, the number of items and of groups, and how
        many answers failed or are missing. `by` splits by facets that the benchmark declares. A value is null where missing
        answers make it undecided (`if_wrong` and `if_excluded` say both readings)."""
        name = self._known(benchmark)
        self._check_facets(name, by)
        table = api.results(
            self._store, name, metrics=metrics, systems=systems, conditions=conditions, by=by, draws=_DRAWS
        )
        left = ("levels", "consistency")  # named by labels, which a judge may have written
        rows = [{key: value for key, value in row.items() if key not in left} for row in table.data.to_json()]
        return _cut("rows", [_names_cut(row) for row in rows])

    def compare(self, benchmark: str, first: str, second: str, metric: str = "", gate: str = "") -> dict[str, Any]:
        """The paired difference of two runs, each named SYSTEM/CONDITION, on the items that both have a score for: first minus
        second, with its 95 % interval over groups and p. With a `gate` ("not worse than 2", "better", "better than 1", in
        points) also whether it holds, does not hold, or is undecided. An interval that contains 0 shows no difference, and
        does not show that there is none."""
        _check_run_names(first, second)
        options: dict[str, Any] = {"systems": (first, second), "gate": gate, "draws": _DRAWS}
        options |= {"metrics": (metric,)} if metric else {}
        found = api.compare(self._store, self._known(benchmark), **options).data
        left = ("levels", "table", "facets")
        rows = [{key: one for key, one in row.to_json().items() if key not in left} for row in found.comparisons]
        judged = {} if found.gate is None else {"gate": found.gate.to_json()}
        return _cut("comparisons", [_names_cut(row) for row in rows]) | judged

    def explain(self, benchmark: str, first: str, second: str, metric: str = "", scorer: str = "") -> dict[str, Any]:
        """Why the scores of two runs, each named SYSTEM/CONDITION, differ: the gap (first minus second) and its parts, which add
        up to it, each with its interval over groups; all differences of how the two were asked, read and judged; and which of
        these can't be told apart with what is stored. Reads the store alone: no model is asked. `runs_between` would tell more
        apart, if a person has them asked (`proctor explain --ask`). Settings are given where they are numbers or names; texts,
        such as prompts, are left out, unless the server was started with --contents."""
        _check_run_names(first, second)
        name = self._known(benchmark)
        runs = [f"{run.system}/{run.condition}" for run in self._store.runs(name)]
        unknown = next((one for one in (first, second) if one not in runs), None)
        if unknown is not None:  # else `explain` takes it for the path of a file
            found, expected = f"no run {unknown[:_NAME]!r}", one_of([_short(one) for one in runs], unknown)
            raise InputError(self._store.shown, found=found, expected=expected)
        options: ExplainOptions = {"store": self._store, "benchmark": name, "metric": metric, "draws": _DRAWS}
        if scorer:
            options["scorer"] = scorer
        given = filled("explain", ExplainOptions, options)
        found_gap = explained_gap(gap_runs(explained_sides(first, second, given), given), priced=False)
        row = found_gap.to_json()
        del row["combinations"]
        fixed = [{"difference": _setting(one.partition(":")[0]), "why": why} for one, why in found_gap.fixed]
        row |= {"cannot_be_swapped": fixed, "differences": []}
        differences = _cut("differences", [self._difference(one) for one in found_gap.differences])
        return _names_cut(row) | {"notes": [_sentence(one) for one in found_gap.notes]} | differences

    def items(self, benchmark: str, group: str = "", answer_format: str = "", offset: int = 0) -> dict[str, Any]:
        """The items of a benchmark, at most 200 from `offset`: id, group (the video or patient: what is resampled together),
        answer format, number of options and of media, whether there is a reference. Optionally those of one group or format."""
        every = self._store.items(self._known(benchmark))
        chosen = [one for one in every if group in {"", one.group} and answer_format in {"", one.answer.kind}]
        part = chosen[max(0, offset) : max(0, offset) + MOST_ROWS]
        after = max(0, offset) + len(part)
        rows = [self._item(one) for one in part]
        return {"items": rows, "of": len(chosen), "next_offset": after if after < len(chosen) else None}

    def show(self, benchmark: str, item: str) -> dict[str, Any]:
        """One item and each run's answer to it: status, scores, seconds, tokens and cost. What was asked and answered is left
        out, unless the server was started with --contents."""
        from proctor.results import item_history

        history = item_history(self._store, self._known(benchmark), item)
        answers = [self._given(one) for one in history.given]
        return {"item": self._item(history.item)} | _cut("answers", answers)

    def _known(self, benchmark: str) -> str:
        name = name_in(self._store, benchmark) if "/" not in benchmark else benchmark
        known = self._store.benchmark_names()
        if name not in known:
            raise InputError(
                self._store.shown, found=f"no benchmark {benchmark[:_NAME]!r}", expected=one_of(known, benchmark)
            )
        return name

    def _check_facets(self, benchmark: str, by: Sequence[str]) -> None:
        """A tag that is no declared facet may hold anything, such as an explanation of the answer."""
        declared = self._store.card(benchmark).facets
        odd = next((one for one in by if one not in declared), None)
        if odd is not None and not self._contents:
            raise UsageError(f"{odd[:_NAME]!r} is no facet that the benchmark declares: {one_of(declared, odd)}")

    def _status(self, one: RunStatus) -> dict[str, Any]:
        row = _names_cut(one.to_json())
        own = _OWN_WORDS.match(one.why)
        row["why"] = own[0] if own is not None else "an error" if one.why else ""
        if self._contents and one.why != row["why"]:
            row["untrusted"] = {"why": clean(one.why)}
        return row

    def _item(self, item: Item) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": _short(item.id),
            "group": _short(item.group),
            "answer_format": item.answer.kind,
            "options": len(item.options),
            "media": [medium.kind for medium in item.media][:20],
            "has_reference": item.reference is not None,
        }
        if self._contents:
            row["untrusted"] = item.model_dump(mode="json")
        return row

    def _difference(self, one: RunDifference) -> dict[str, Any]:
        """Settings hold texts (prompts, options, whatever a package stores): without contents only what can't be one."""
        named = one.kind in _NAMED_KINDS
        row: dict[str, Any] = {"kind": one.kind, "what": _setting(one.what)}
        for side, value in (("first", one.first), ("second", one.second)):
            row[side] = _short(value) if named or _PLAIN.fullmatch(value) else None
        row |= {"items": one.items, "of": one.of}
        if self._contents:
            row["untrusted"] = {name: clean(text) for name, text in (("first", one.first), ("second", one.second))}
            row["untrusted"]["lines"] = [clean(line) for line in one.lines]
        return row

    def _given(self, given: GivenAnswer) -> dict[str, Any]:
        answer, timing = given.answer, None if given.answer is None else given.answer.timing
        row: dict[str, Any] = {
            "system": _short(given.run.system),
            "condition": _short(given.run.condition),
            "status": None if answer is None else answer.status.value,
            "readable": None if answer is None else answer.parsed is not None,
            "usage": None if answer is None else answer.usage.model_dump(),
            "model_s": None if timing is None else timing.model_s,
            "scores": [
                {"metric": _short(one.metric), "scorer": _short(one.scorer), "value": one.value} for one in given.scores
            ],
            "judgements": len(given.judgements),
        }
        if self._contents:
            row["untrusted"] = given.to_json()
        return row


def _check_run_names(*runs: str) -> None:
    for one in runs:
        if not all(one.rpartition("/")):
            raise UsageError(f"{one[:_NAME]!r} names no run: write SYSTEM/CONDITION, as in the tool `runs`.")


def _setting(name: str) -> str:
    """The name of a difference; of a setting whose name is no plain word only that it is one."""
    from proctor.results import DIFFERENCE_NAMES

    return name if name in DIFFERENCE_NAMES or _NAME_OF_SETTING.fullmatch(name) else "a setting"


def _sentence(text: str) -> str:
    return shorten(" ".join(clean(text).split()), 600)


def _cut(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: list(rows[:MOST_ROWS]), "left_out": max(0, len(rows) - MOST_ROWS)}


def _short(name: str) -> str:
    """A name without control characters, cut."""
    return shorten(" ".join(clean(name).split()), _NAME)


def _names_cut(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose texts are names: each cut, also within its objects."""
    return {key: _value(value) for key, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, Mapping):
        return {_short(str(key)): _value(one) for key, one in value.items()}
    return [_value(one) for one in value] if isinstance(value, list | tuple) else value


def told(error: ProctorError) -> str:
    """The message of an error for an agent; of a damaged store only that it is, since the message may quote a row."""
    from proctor.runs import DamagedStoreError

    if isinstance(error, DamagedStoreError):
        return "the store is damaged: proctor check store says where"
    return shorten(clean(str(error)), 600)
