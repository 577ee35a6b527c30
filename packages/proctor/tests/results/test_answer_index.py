"""Answers as arrays that are filtered in memory, against the answers themselves, one by one."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from proctor.core import ACCURACY, NO_ANSWER, Answer, Benchmark, InputError, Item, Reference, Score, Status, generator
from proctor.core.formats import ChoiceFormat
from proctor.results import (
    CELLS,
    RESULTS,
    STATES,
    AnswerFilter,
    AnswerIndex,
    AnswerState,
    given_answer,
    item_history,
    load_excerpts,
    load_index,
    parsed_values,
    run_progress,
)
from proctor.runs import Run, Store
from tests.support.report_store import a_store

CONTENT = {
    "a": ("A", Status.ANSWERED),
    "b": ("B", Status.ANSWERED),
    "unreadable": (None, Status.ANSWERED),
    "cut": (None, Status.ANSWERED),
    "refused": (None, Status.REFUSED),
    "late": (None, Status.TIMED_OUT),
    "error": (None, Status.ERROR),
    "failed": (None, Status.FAILED),
}


def states_of(index: AnswerIndex, system: str, condition: str = "video") -> dict[str, str]:
    column = index.columns[index.column(system, condition)]
    return {name: STATES[code].value for name, code in zip(index.items.ids, column.state, strict=True)}


@pytest.fixture
def small(tmp_path: Path) -> Store:
    """Eight ways to end, and an item that is not asked."""
    store = Store(tmp_path / "small.db")
    names = (*CONTENT, "later")
    items = tuple(
        Item(
            id=name,
            group=f"g{number % 3}",
            question=f"Which organ is seen in {name}?",
            options=("the Liver", "the spleen"),
            answer=ChoiceFormat(),
            reference=Reference(answer="A", rationale="By its edge."),
            tags={"half": "first" if number < 4 else "second"},
        )
        for number, name in enumerate(names)
    )
    store.add_benchmark(Benchmark("small", "Small", items, (ACCURACY,), "accuracy", facets=("half",)))
    run = store.start_run("small", "model", "video", {})
    rows = []
    for name, (parsed, status) in CONTENT.items():
        reason = "" if status is Status.ANSWERED else f"HTTP 429: wait {len(name)} s"
        ended: dict[str, JsonValue] = {"cut_off": name in {"cut", "a"}}
        text = f"I say {parsed or '100 %_'}"
        answer = Answer(item_id=name, text=text, parsed=parsed, status=status, reason=reason, extra=ended)
        scored = [] if status is Status.FAILED else [Score(item_id=name, metric="accuracy", value=float(parsed == "A"))]
        rows.append((answer, scored))
    store.write(run, rows)
    return store


def test_every_way_to_end_has_its_state(small: Store) -> None:
    index = load_index(small, "small")
    assert states_of(index, "model") == {
        "a": "right",
        "b": "wrong",
        "unreadable": "unreadable",
        "cut": "cut_off",
        "refused": "refused",
        "late": "timed_out",
        "error": "error",
        "failed": "failed",
        "later": "not_asked",
    }, "an answer that can be read is what it says, also if the token limit ended it"


def test_what_a_system_does_wrong_is_wrong_and_what_the_infrastructure_does_is_missing(small: Store) -> None:
    index = load_index(small, "small")

    def kept(**how: object) -> list[str]:
        chosen = index.select(small, AnswerFilter(**how))  # type: ignore[arg-type]
        return [index.items.ids[index.located(row)[0]] for row in chosen.rows.tolist()]

    assert kept(results=("right",)) == ["a"]
    assert kept(results=("wrong",)) == ["b", "unreadable", "cut", "refused", "late", "error"]
    assert kept(results=("cut_off",)) == ["cut"]
    assert kept(results=("unreadable",)) == ["unreadable"]
    assert kept(results=("missing",)) == ["failed", "later"]
    assert kept(results=("failed", "refused")) == ["refused", "failed"]
    assert kept() == list(CONTENT), "what was not asked is no answer"
    assert kept(with_unasked=True) == [*CONTENT, "later"]
    assert kept(facets=(("half", "second"),), results=("wrong",)) == ["refused", "late", "error"]
    assert kept(item="late") == ["late"]


def test_words_are_found_in_questions_options_references_and_replies(small: Store) -> None:
    index = load_index(small, "small")

    def found(text: str) -> int:
        return len(index.select(small, AnswerFilter(text=text)))

    assert found("LIVER") == found("edge") == found("organ") == len(CONTENT)
    assert found("organ late") == 1, "every word must be there"
    assert found('"I say A"') == 1
    assert found('"say i"') == 0
    assert found('"i SAY b"') == 1
    assert found("question") == found("reference") == 0, "names of fields are no words"
    assert found("100 %_") == 6, "no character is a wildcard"
    assert found("1_0") == found("%%%") == 0
    assert found("'; DROP TABLE answers; --") == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"results": ("rihgt",)}, "result: found 'rihgt', expected one of right"),
        ({"facets": (("nonsense", "x"),)}, "facet: found 'nonsense', expected one of"),
        ({"item": "nobody"}, "item: found 'nobody', expected an item of small"),
    ],
)
def test_what_is_unknown_is_said_in_one_line(small: Store, how: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        load_index(small, "small").select(small, AnswerFilter(**how))  # type: ignore[arg-type]
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_only_runs_that_changed_are_read_again(small: Store) -> None:
    before = load_index(small, "small")
    assert load_index(small, "small", before) is before
    other = small.start_run("small", "other", "video", {})
    small.write(other, [(Answer(item_id="a", parsed="B"), [Score(item_id="a", metric="accuracy", value=0.0)])])
    now = load_index(small, "small", before)
    assert now.columns[0].state is before.columns[0].state, "the first run was not read again"
    assert states_of(now, "other")["a"] == "wrong"
    small.write(other, [(Answer(item_id="b", parsed="A"), [Score(item_id="b", metric="accuracy", value=1.0)])])
    later = load_index(small, "small", now)
    assert (states_of(now, "other")["b"], states_of(later, "other")["b"]) == ("not_asked", "right")
    small.add_scores(other, [Score(item_id="b", metric="accuracy", value=0.0)])
    assert states_of(load_index(small, "small", later), "other")["b"] == "wrong", "a changed score counts as well"


def test_progress_counts_what_is_left_and_why(small: Store) -> None:
    index = load_index(small, "small")
    (one,) = run_progress(small, index, [column.run for column in index.columns])
    assert (one.expected, one.settled, one.failed, one.left, one.complete) == (9, 7, 1, 2, False)
    assert one.states[AnswerState.NOT_ASKED] == 1
    assert sum(one.states.values()) == 9
    reasons = {cause.state.value: (cause.reason, cause.count) for cause in one.causes}
    assert reasons["failed"] == ("HTTP 429: wait … s", 1)
    assert reasons["unreadable"] == ("no reason was recorded", 1)
    assert reasons["cut_off"] == ("no reason was recorded", 1)
    assert one.states[AnswerState.CUT_OFF] == 1
    assert one.cost is None
    assert one.seconds is None


def test_causes_are_the_same_however_they_are_looked_up(small: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small.runs("small")[0]
    lacking = Answer(item_id="later", reason=NO_ANSWER, problem=NO_ANSWER)
    small.write(run, [(lacking, [Score(item_id="later", metric="accuracy", value=0.0)])])
    index = load_index(small, "small")
    assert states_of(index, "model")["later"] == "not_submitted"
    (few,) = run_progress(small, index, [run])
    monkeypatch.setattr(sys.modules[run_progress.__module__], "_MOST_LOOKED_UP", 0)
    (many,) = run_progress(small, index, [run])
    assert sorted(many.causes, key=str) == sorted(few.causes, key=str)
    counts = {cause.state.value: cause.count for cause in many.causes}
    assert counts == {"unreadable": 1, "cut_off": 1, "refused": 1, "timed_out": 1, "error": 1, "failed": 1}


def test_repetitions_are_rows_of_their_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "again.db")
    items = tuple(
        Item(
            id=name,
            group=name,
            question="?",
            options=("a", "b"),
            answer=ChoiceFormat(),
            reference=Reference(answer="A"),
        )
        for name in "xy"
    )
    store.add_benchmark(Benchmark("again", "Again", items, (ACCURACY,), "accuracy"))
    run = store.start_run("again", "m", "video", {"repeats": 3})
    for item, repetition, value in (("x", 0, 1.0), ("x", 1, 0.0), ("y", 0, 0.0)):
        score = Score(item_id=item, repetition=repetition, metric="accuracy", value=value)
        store.write(run, [(Answer(item_id=item, repetition=repetition, parsed="A" if value else "B"), [score])])
    index = load_index(store, "again")
    assert [column.repetition for column in index.columns] == [0, 1, 2]
    assert len(index.select(store, AnswerFilter())) == 3
    (one,) = run_progress(store, index, [run])
    assert (one.expected, one.settled, one.left) == (6, 3, 3), "three answers to each of two items were asked for"
    found = given_answer(store, run, "x", 1)
    assert found.answer is not None
    assert (found.answer.parsed, [score.value for score in found.scores]) == ("B", [0.0])
    assert parsed_values(store, index, 0) == {0: "A", 1: "B"}


def oracle(store: Store, index: AnswerIndex, wanted: AnswerFilter) -> set[tuple[str, str, str]]:
    """The same by reading every answer and every item."""
    found = set()
    items = {item.id: item for item in store.items("toy")}
    flags = {name: dict(zip(index.items.ids, values, strict=True)) for name, values in index.items.flags.items()}
    for run in store.runs("toy"):
        answers = store.answers(run)
        scores: dict[str, float] = {}
        for metric in ("helpful", "accuracy"):
            scores |= {
                row.item_id: row.value / (2 if metric == "helpful" else 1)
                for row in store.score_rows(run, metric=metric)
            }
        for name, item in items.items():
            answer = answers.get(name)
            if wanted.systems and run.system not in wanted.systems:
                continue
            if wanted.conditions and run.condition not in wanted.conditions:
                continue
            if wanted.results and not (set(wanted.results) & results_of(answer, scores.get(name))):
                continue
            tags = {key: str(value) for key, value in item.tags.items()} | {
                key: one[name] for key, one in flags.items()
            }
            tags["format"] = item.answer.kind
            if any(tags.get(facet) != value for facet, value in wanted.facets):
                continue
            words = [item.question, *item.options, str(item.reference and item.reference.answer)]
            words += [str(item.reference and item.reference.rationale), answer.text if answer else ""]
            if all(word.casefold() in "\n".join(words).casefold() for word in wanted.words):
                found.add((name, run.system, run.condition))
    return found


def results_of(answer: Answer | None, score: float | None) -> set[str]:
    """The results that an answer is among."""
    if answer is None:
        return {"missing", "not_asked"}
    if answer.status is not Status.ANSWERED:
        return {answer.status.value, "missing" if answer.status is Status.FAILED else "wrong"}
    if answer.parsed is None:
        return {"unreadable", "wrong"}
    return (
        {"missing", "unscored"}
        if score is None
        else {"right"}
        if score == 1
        else {"wrong"}
        if score == 0
        else {"partial"}
    )


def test_filters_find_what_a_loop_over_all_answers_finds(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    index = load_index(store, "toy")
    rng = generator(7, "filters")
    texts = ("", "", "instrument", "step 1", "clip", "Nothing", "answer: b", "scissors step", "I can't")
    for _ in range(60):
        facets = tuple((name, str(rng.choice(index.facets[name]))) for name in index.facets if rng.random() < 0.3)
        wanted = AnswerFilter(
            tuple(sorted({str(rng.choice(index.systems)) for _ in range(rng.integers(0, 3))})),
            tuple(sorted({str(rng.choice(index.conditions)) for _ in range(rng.integers(0, 3))})),
            tuple(sorted({str(rng.choice(list(RESULTS))) for _ in range(rng.integers(0, 3))})),
            facets,
            str(rng.choice(texts)),
        )
        sort = str(rng.choice(["item", "system", "worst", "best"]))
        chosen = index.select(store, wanted, sort)
        located = [index.located(row) for row in chosen.rows.tolist()]
        found = {
            (index.items.ids[position], index.columns[number].run.system, index.columns[number].run.condition)
            for position, number in located
        }
        assert found == oracle(store, index, wanted), wanted
        assert len(found) == len(chosen)
        assert chosen.items == len({name for name, _, _ in found})
        values = [float(index.columns[number].value[position]) for position, number in located]
        known = [value for value in values if not math.isnan(value)]
        if sort in {"worst", "best"}:
            assert known == sorted(known, reverse=sort == "best")
            assert all(math.isnan(value) for value in values[len(known) :]), "answers without a value come last"
        if sort == "item":
            assert located == sorted(located)


def test_two_runs_crossed_are_counted_by_hand(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    index = load_index(store, "toy")
    a, b = index.column("looker", "video"), index.column("guesser", "video")
    crossed = index.crossed(a, b)
    counts = {name: int(crossed.named(name).sum()) for name in CELLS}
    first, second = states_of(index, "looker"), states_of(index, "guesser")
    both = [
        (first[name] == "right", second[name] == "right")
        for name in first
        if "failed" not in (first[name], second[name])
    ]
    assert counts == {
        "only-a": both.count((True, False)),
        "only-b": both.count((False, True)),
        "both": both.count((True, True)),
        "neither": both.count((False, False)),
        "lacking": 1,
    }
    assert sum(counts.values()) == len(index.items) == 48
    assert int(index.crossed(b, a).only_a.sum()) == counts["only-b"]
    with pytest.raises(InputError, match="cell: found 'only-c', expected one of only-a"):
        crossed.named("only-c")


def test_excerpts_are_of_the_rows_asked_for(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    index = load_index(store, "toy")
    rows = generator(1, "rows").permutation(len(index.items) * len(index.columns))[:40].tolist()
    for row, one in zip(rows, load_excerpts(store, index, rows), strict=True):
        position, number = index.located(row)
        run: Run = index.columns[number].run
        answer = store.answers(run)[index.items.ids[position]]
        assert (one.row, one.item.id, one.column.run) == (row, answer.item_id, run)
        assert (one.parsed, one.text, one.reason) == (answer.parsed, answer.text, answer.reason or answer.problem)
        assert one.seconds == (answer.timing.model_s if answer.timing else None)
        assert one.value == (
            None if np.isnan(index.columns[number].value[position]) else index.columns[number].value[position]
        )


def test_one_item_is_looked_up_as_among_all_items(tmp_path: Path) -> None:
    a_store(tmp_path).close()
    path = tmp_path / "toy.db"
    one, all_of_them = (Store(path, create=False, read_only=True) for _ in range(2))
    index = load_index(one, "toy")
    for name, number in all_of_them.item_numbers("toy").items():
        assert one.item_number("toy", name) == all_of_them.item_number("toy", name) == number
        position = index.item_position(name)
        assert index.items.id_of(position) == name
    assert "by_number" not in vars(index.items.names)
    positions = {name: index.item_position(name) for name in index.items.ids}  # now all are known
    assert [*positions.values()] == [*range(len(index.items))]
    assert [index.items.id_of(position) for position in positions.values()] == [*positions]
    for store in (one, all_of_them):
        with pytest.raises(KeyError, match="nobody"):
            store.item_number("toy", "nobody")
    few = index.items.only(np.arange(len(index.items)) % 2 == 1)
    assert [few.id_of(position) for position in range(len(few))] == index.items.ids[1::2]


def test_one_answer_is_that_of_the_item_s_history(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for given in item_history(store, "toy", "q007").given:
        assert given_answer(store, given.run, "q007") == given
        assert [(score.metric, score.scorer) for score in given.scores] == [("helpful", "the-judge")]
        assert given_answer(store, given.run, "q007", keys=[("accuracy", "code")]).scores == ()


def test_abstaining_is_a_state_of_its_own_and_right_where_nothing_else_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "abstained.db")
    items = tuple(
        Item(id=name, group=name, question="?", options=("a", "b"), answer=ChoiceFormat(), reference=reference)
        for name, reference in (("x", Reference(answer="A")), ("y", Reference(answer=None, unanswerable=True)))
    )
    store.add_benchmark(Benchmark("silent", "Silent", items, (ACCURACY,), "accuracy"))
    run = store.start_run("silent", "m", "video", {})
    for item, value in (("x", 0.0), ("y", 1.0)):
        score = Score(item_id=item, metric="accuracy", value=value)
        store.write(run, [(Answer(item_id=item, status=Status.ABSTAINED, text="UNANSWERABLE"), [score])])
    index = load_index(store, "silent")
    assert len(index.select(store, AnswerFilter(results=("abstained",)))) == 1
    assert len(index.select(store, AnswerFilter(results=("wrong",)))) == 1
    assert len(index.select(store, AnswerFilter(results=("right",)))) == 1
    (one,) = run_progress(store, index, [run])
    assert (one.settled, one.left, one.causes) == (2, 0, ())
