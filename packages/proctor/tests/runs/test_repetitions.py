"""Answers, scores and claims have a repetition in their keys: several answers to one item stand beside each other, and
whatever takes one answer per item takes the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from proctor.core import Answer, InputError, Score, Status, Usage
from proctor.results import Options, public_copy, results
from proctor.runs import ItemClaims, Run, Store, check_store, evaluation_content, merge_stores, schema
from proctor.runs.controls import reopen_errors
from proctor.runs.unwritten import add_unwritten, keep_unwritten
from tests.runs.test_store import a_benchmark, a_run


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


def an_answer(item: str, repetition: int, status: Status = Status.ANSWERED, text: str = "1") -> Answer:
    used = Usage(requests=1) if status is Status.FAILED else Usage()
    return Answer(item_id=item, repetition=repetition, text=text, parsed=1, status=status, usage=used)


def right(item: str, value: float = 1.0) -> Score:
    """As scorers give it, which know nothing of repetitions."""
    return Score(item_id=item, metric="accuracy", value=value)


def write(store: Store, run: Run, item: str, *values: float) -> None:
    """One answer for each value, the first with repetition 0."""
    rows = [(an_answer(item, number, text=str(value)), [right(item, value)]) for number, value in enumerate(values)]
    assert store.write(run, rows) == [True] * len(values)


def test_answers_to_one_item_stand_beside_each_other(url: str) -> None:
    with_run = Store(url)
    run = a_run(with_run, a_benchmark())
    write(with_run, run, "q1", 1.0, 0.0, 0.5)
    with_run.close()
    store = Store(url, create=False)
    assert [store.answers(run, number)["q1"].text for number in range(3)] == ["1.0", "0.0", "0.5"]
    assert store.answers(run)["q1"].repetition == 0
    assert store.answers(run, 2)["q1"].repetition == 2
    assert [[row.value for row in store.score_rows(run, repetition=number)] for number in range(3)] == [
        [1.0],
        [0.0],
        [0.5],
    ]
    assert store.score_rows(run, repetition=1)[0].repetition == 1, "a score belongs to the answer that it came with"
    assert store.count_answers(run) == (3, 0)
    assert store.scored(run, "code", 2) == {"q1"}
    assert list(check_store(store)) == []
    store.close()


def test_each_repetition_is_settled_and_replaced_by_itself(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    store.write(run, [(an_answer("q0", 0), []), (an_answer("q0", 1, Status.FAILED), [])])
    assert (store.settled(run), store.settled(run, 1)) == ({"q0"}, set())
    assert (list(store.paid_in_vain(run)), list(store.paid_in_vain(run, 1))) == ([], ["q0"])
    again = [(an_answer("q0", 0, text="another"), [right("q0")]), (an_answer("q0", 1, text="now"), [right("q0")])]
    assert store.write(run, again) == [False, True]
    assert [store.answers(run, number)["q0"].text for number in (0, 1)] == ["1", "now"]
    assert (store.scored(run, "code"), store.scored(run, "code", 1)) == (set(), {"q0"})
    store.add_scores(run, [Score(item_id="q0", metric="accuracy", value=0.25, repetition=1)])
    assert [row.value for row in store.score_rows(run, repetition=1)] == [0.25]
    store.close()


def test_many_rows_at_once_keep_their_repetitions(url: str) -> None:
    """More than go in single statements: by COPY on PostgreSQL."""
    store = Store(url)
    run = a_run(store, a_benchmark(150))
    rows = [(an_answer(f"q{item}", number), [right(f"q{item}", number)]) for number in (0, 1) for item in range(150)]
    assert store.write(run, rows) == [True] * 300
    assert store.write(run, rows) == [True] * 300
    for number in (0, 1):
        assert len(store.answers(run, number)) == 150
        assert {row.value for row in store.score_rows(run, repetition=number)} == {float(number)}
    store.close()


def test_a_repetition_below_0_is_no_answer() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        an_answer("q1", -1)


def test_figures_take_the_mean_of_the_answers_to_each_item(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    for number in range(4):
        write(store, run, f"q{number}", *((1.0, 0.0, 0.0) if number else (1.0,)))
    row = next(row for row in results(store, "toy", Options(draws=100)).rows if row.metric == "accuracy")
    assert (row.value, row.n) == (0.5, 4)
    copy = public_copy(store, "toy")
    public = next(row for row in results(copy, "toy", Options(draws=100)).rows if row.metric == "accuracy")
    assert (public.value, public.n) == (0.5, 4)
    with copy.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.answers)).scalar_one() == 10
        assert connection.execute(select(func.sum(schema.scores.c.repetition))).scalar_one() == 9
    copy.close()
    store.close()


def filled(file: Path, *values: float) -> Store:
    store = Store(file)
    write(store, a_run(store, a_benchmark()), "q1", *values)
    return store


def test_repetitions_are_content_and_are_merged_one_by_one(tmp_path: Path) -> None:
    one, three = filled(tmp_path / "one.db", 1.0), filled(tmp_path / "three.db", 1.0, 0.0, 0.5)
    contents = [evaluation_content(store, "toy") for store in (one, three)]
    assert [content.runs[0].answers for content in contents] == [1, 3]
    assert contents[0].sha256 != contents[1].sha256
    swapped = filled(tmp_path / "swapped.db", 1.0, 0.5, 0.0)
    assert evaluation_content(swapped, "toy").sha256 != contents[1].sha256, "which answer came when is content"
    merged = {row.what: row for row in merge_stores(one, [three])}
    assert (merged["answers"].taken, merged["answers"].same, merged["answers"].refused) == (2, 1, 0)
    assert (merged["scores"].taken, merged["scores"].same, merged["scores"].refused) == (2, 1, 0)
    assert evaluation_content(one, "toy") == contents[1]
    refused = {row.what: row for row in merge_stores(one, [swapped])}
    assert (refused["answers"].refused, refused["answers"].first) == (2, "item q1, repetition 1: another answer")
    assert refused["scores"].first == "item q1, repetition 1: a score of another answer"


def test_a_failed_repetition_is_replaced_by_a_merge(tmp_path: Path) -> None:
    target, source = filled(tmp_path / "one.db", 1.0), filled(tmp_path / "two.db", 1.0, 0.0)
    run = target.runs("toy")[0]
    target.write(run, [(an_answer("q1", 1, Status.FAILED), [])])
    merged = {row.what: row for row in merge_stores(target, [source])}
    assert merged["answers"].taken == 1
    assert [target.answers(run, number)["q1"].text for number in (0, 1)] == ["1.0", "0.0"]


def test_a_claim_is_on_one_repetition(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    claims = ItemClaims(store)
    assert claims.take(run, ["q1"]) == ["q1"]
    with store.writing() as connection:
        assert claims.kept(connection, [(run, an_answer("q1", 1)), (run, an_answer("q1", 0))]) == [False, True]
    assert claims.stale == 1
    store.close()


def test_only_scores_of_reopened_answers_go(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    broken = an_answer("q1", 1, Status.ERROR)
    store.write(run, [(an_answer("q1", 0), [right("q1")]), (broken, [right("q1", 0.0)])])
    reopen_errors(store, run, ["q1", "q2"])
    assert (store.settled(run), store.settled(run, 1)) == ({"q1"}, set())
    assert (store.scored(run, "code"), store.scored(run, "code", 1)) == ({"q1"}, set())
    reopen_errors(store, run, ["q2"])
    store.close()


def test_answers_beside_the_store_keep_their_repetition(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    run = a_run(store, a_benchmark())
    keep_unwritten(store, [(run, an_answer("q1", number, text=str(number)), [right("q1")]) for number in (0, 1)])
    assert add_unwritten(store, run) == 2
    assert [store.answers(run, number)["q1"].text for number in (0, 1)] == ["0", "1"]
    assert store.scored(run, "code", 1) == {"q1"}


def test_an_unknown_item_is_refused_in_every_repetition(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    run = a_run(store, a_benchmark())
    with pytest.raises(InputError, match="found an answer to 'q9', expected a known item"):
        store.write(run, [(an_answer("q9", 3), [])])
