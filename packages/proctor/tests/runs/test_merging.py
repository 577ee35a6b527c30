"""Stores joined by what their rows say: exact for rows that overlap, are missing, contradict and are foreign."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import JsonValue
from sqlalchemy import text as sql

from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Judgement, Reference, Score, Status, Usage
from proctor.core.formats import CountFormat
from proctor.runs import Store, evaluation_content, merge_stores, stored_runs
from tests.support.program import proctor

ITEMS = 12
SYSTEMS = ("one", "two", "three")


def a_task(name: str = "toy", *, question: str = "How many clips?") -> Benchmark:
    items = tuple(
        Item(id=f"q{k}", group=f"v{k // 2}", question=question, answer=CountFormat(), reference=Reference(answer=k))
        for k in range(ITEMS)
    )
    return Benchmark(name=name, title="Toy", items=items, metrics=(ACCURACY,), headline="accuracy")


def fill(
    store: Store,
    system: str,
    items: Mapping[str, str],
    *,
    task: Benchmark | None = None,
    seed: int = 0,
    failed: tuple[str, ...] = (),
    cost: float = 0.1,
) -> None:
    """Answers (texts by item), each with a judged score, and failed ones without."""
    task = task or a_task()
    store.add_benchmark(task)
    settings: dict[str, JsonValue] = {"system": {"seed": seed, "base_url": f"http://{cost}/v1"}}
    run = store.start_run(task.name, system, "video", settings)
    for item, text in items.items():
        key = f"{system}{item}{text}".ljust(64, "0")
        value = float(len(text) % 2)
        reply: dict[str, JsonValue] = {"score": value}
        store.put(Judgement(key=key, judge="j", item_id=item, reply=reply, usage=Usage(requests=1, cost_usd=cost)))
        score = Score(item_id=item, metric="accuracy", value=value, scorer="j", judgement_key=key)
        store.write(run, [(Answer(item_id=item, text=text, parsed=1, usage=Usage(cost_usd=cost)), [score])])
    store.write(run, [(Answer(item_id=item, status=Status.FAILED, reason=f"at {cost}"), []) for item in failed])


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    where = str(tmp_path / "all.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    store = Store(where)
    yield store
    store.close()


def stores(folder: Path, count: int) -> list[Store]:
    return [Store(folder / f"part{number}.db") for number in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_one_evaluation_join_to_the_same_hash(tmp_path: Path, target: Store, seed: int) -> None:
    rng = random.Random(seed)
    whole, parts = Store(tmp_path / "whole.db"), stores(tmp_path, 3)
    for system in SYSTEMS:
        answers = {f"q{k}": f"{system} {rng.randrange(4)}" for k in range(ITEMS)}
        fill(whole, system, answers)
        kept_rows = {item: rng.sample(range(3), rng.randint(1, 3)) for item in answers}
        for number, part in enumerate(parts):
            own = {item: text for item, text in answers.items() if number in kept_rows[item]}
            others = tuple(item for item in answers if item not in own and rng.random() < 0.5)
            fill(part, system, own, failed=others, cost=number + 1.0)
    rng.shuffle(parts)
    found = merge_stores(target, parts)
    assert not [one for one in found if one.refused]
    expected = evaluation_content(whole, "toy")
    assert asdict(evaluation_content(target, "toy")) == asdict(expected)
    assert {(one.what, one.taken) for one in found if one.system == "one"} >= {("answers", ITEMS), ("scores", ITEMS)}
    again = merge_stores(target, parts[:1])
    assert all(one.taken == one.refused == 0 for one in again)
    assert evaluation_content(target, "toy").sha256 == expected.sha256


def test_a_merged_run_began_when_its_first_part_began(tmp_path: Path) -> None:
    parts = stores(tmp_path, 2)
    for part, begun in zip(parts, ("2026-03-02T10:00:00+00:00", "2026-03-01T10:00:00+00:00"), strict=True):
        fill(part, "one", {"q1": "one"})
        with part.writing() as connection:
            connection.execute(sql("UPDATE runs SET created = :begun"), {"begun": begun})
    whole = Store(tmp_path / "whole.db")
    merge_stores(whole, parts[:1])
    assert begun_of(whole) == ["2026-03-02T10:00:00+00:00"]
    merge_stores(whole, parts[1:])
    assert begun_of(whole) == ["2026-03-01T10:00:00+00:00"]


def begun_of(store: Store) -> list[str]:
    return [run["begun"] for run in stored_runs(store)]


def test_the_hash_tells_what_was_said_and_not_what_it_cost(tmp_path: Path) -> None:
    one, two, other = stores(tmp_path, 3)
    fill(one, "one", {"q1": "a", "q2": "b"}, failed=("q3",))
    fill(two, "one", {"q2": "b", "q1": "a"}, failed=("q3",), cost=7.0)
    fill(other, "one", {"q1": "a", "q2": "c"}, failed=("q3",))
    first, second, third = (evaluation_content(store, "toy").sha256 for store in (one, two, other))
    assert first == second != third


def test_contradictions_are_refused_and_the_rest_is_taken(tmp_path: Path, target: Store) -> None:
    first, second = stores(tmp_path, 2)
    fill(target, "one", {"q0": "kept", "q1": "same"})
    fill(first, "one", {"q0": "other", "q1": "same", "q2": "new", "q3": "left"})
    fill(second, "one", {"q3": "right", "q4": "new too"})
    before = evaluation_content(target, "toy")
    found = {one.what: one for one in merge_stores(target, [first, second])}
    run = target.runs("toy")[0]
    assert {item: one.text for item, one in target.answers(run).items()} == {
        "q0": "kept", "q1": "same", "q2": "new", "q4": "new too",
    }  # fmt: skip
    answers, scores = found["answers"], found["scores"]
    assert (answers.taken, answers.same, answers.refused) == (2, 1, 3)
    assert answers.first == "item q0: another answer"
    assert (scores.taken, scores.same, scores.refused) == (2, 1, 3)
    assert (before.runs[0].answers, evaluation_content(target, "toy").runs[0].answers) == (2, 4)


@pytest.mark.parametrize("order", [1, -1])
def test_a_judgement_that_contradicts_takes_its_scores_with_it(tmp_path: Path, order: int) -> None:
    first, second, target = stores(tmp_path, 3)
    for store, value in ((first, 1.0), (second, 0.0)):
        fill(store, "one", {"q1": "a"})
        judgement = Judgement(key="k" * 64, judge="j", item_id="q2", reply={"score": value})
        store.put(judgement)
        score = Score(item_id="q2", metric="accuracy", value=1.0, scorer="j", judgement_key=judgement.key)
        store.write(store.runs("toy")[0], [(Answer(item_id="q2", text="b", parsed=1), [score])])
    found = {one.what: one for one in merge_stores(target, [first, second][::order])}
    assert (found["judgements"].taken, found["judgements"].refused) == (1, 2)
    assert (found["scores"].taken, found["scores"].refused) == (1, 2)
    assert target.judgements(["k" * 64]) == {}


def test_foreign_items_settings_and_stores_are_refused(tmp_path: Path) -> None:
    first, second, third, target = stores(tmp_path, 4)
    fill(target, "one", {"q1": "a"})
    fill(first, "one", {"q2": "b"}, task=a_task(question="Other words?"))
    fill(second, "one", {"q2": "b"}, seed=5)
    fill(second, "two", {"q2": "b"})
    fill(third, "lone", {"q1": "a"}, task=a_task("second-task"))
    found = merge_stores(target, [first, second, third])
    refused = {(one.what, one.first) for one in found if one.refused}
    assert ("items", "other items under the same name") in refused
    assert ("settings", "system.seed 0 then, 5 now") in refused
    assert [run.system for run in target.runs("toy")] == ["one", "two"]
    assert target.answers(target.runs("toy")[0]).keys() == {"q1"}
    assert [run.system for run in target.runs("second-task")] == ["lone"]
    with pytest.raises(InputError, match="the store twice"):
        merge_stores(target, [first, first])


def test_sources_that_disagree_on_the_items_leave_nothing(tmp_path: Path) -> None:
    first, second, target = stores(tmp_path, 3)
    fill(first, "one", {"q1": "a"})
    fill(second, "one", {"q1": "a"}, task=a_task(question="Other words?"))
    assert {one.refused for one in merge_stores(target, [first, second]) if one.what == "items"} == {2}
    assert target.benchmark_names() == []


def test_a_damaged_source_is_named_and_nothing_is_taken(tmp_path: Path) -> None:
    import sqlite3

    first, second, target = stores(tmp_path, 3)
    fill(first, "one", {"q1": "a"})
    fill(second, "one", {"q2": "b"})
    second.close()
    with sqlite3.connect(tmp_path / "part1.db") as connection:
        connection.execute("UPDATE judgements SET body = '{'")
    with pytest.raises(InputError, match=r"part1\.db"):
        merge_stores(target, [first, Store(tmp_path / "part1.db")])
    assert target.benchmark_names() == []


def test_the_commands_print_tables_and_end_with_1(tmp_path: Path) -> None:
    first, second = stores(tmp_path, 2)
    fill(first, "one", {"q1": "a"})
    fill(second, "one", {"q1": "b", "q2": "c"})
    joined = tmp_path / "all.db"
    done = proctor("store", "merge", tmp_path / "part0.db", "--store", joined)
    assert done.returncode == 0, done.stderr
    told = proctor("results", "toy", "--hash", "--store", joined)
    assert evaluation_content(first, "toy").sha256 in told.stdout
    refused = proctor("store", "merge", tmp_path / "part1.db", "--store", joined)
    assert refused.returncode == 1
    assert "item q1: another answer" in refused.stderr
