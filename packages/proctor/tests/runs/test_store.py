"""The store: nothing is lost, nothing is overwritten, and strangers are told so in one line."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from sqlalchemy import text

from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    InputError,
    Item,
    Judgement,
    Reference,
    Score,
    Status,
    Timing,
    Usage,
)
from proctor.core.formats import CountFormat
from proctor.runs import ItemClaims, Run, Store, stored_runs
from tests.support.failures import failed_items


def a_benchmark(items: int = 4, *, question: str = "How many clips?") -> Benchmark:
    return Benchmark(
        name="toy",
        title="Toy",
        items=tuple(
            Item(
                id=f"q{number}",
                group=f"v{number // 2}",
                question=question,
                answer=CountFormat(),
                reference=Reference(answer=number),
                tags={"half": "first" if number < items / 2 else "second"},
            )
            for number in range(items)
        ),
        metrics=(ACCURACY,),
        headline="accuracy",
        facets=("half",),
    )


def a_run(store: Store, benchmark: Benchmark, system: str = "one") -> Run:
    store.add_benchmark(benchmark)
    return store.start_run(benchmark.name, system, "video", {"seed": 0})


def an_answer(item: str, status: Status = Status.ANSWERED, text: str = "1") -> Answer:
    return Answer(item_id=item, text=text, parsed=1, status=status)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


def test_an_answer_comes_back_as_it_was(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    answer = Answer(
        item_id="q1",
        text="Zwölf \x00 clips 🧷",
        parsed=12,
        usage=Usage(requests=2, input_tokens=10, output_tokens=3, cached_tokens=4, cost_usd=0.25),
        timing=Timing(model_s=1.5, media_s=0.5, queue_s=0.1, retry_s=0.2),
        extra={"seen": [1, 2]},
    )
    store.write(run, [(answer, [Score(item_id="q1", metric="accuracy", value=0.0, label="wrong")])])
    store.close()
    again = Store(url, create=False)
    assert again.answers(run)["q1"] == answer.model_copy(update={"text": "Zwölf \ufffd clips 🧷"})
    assert again.settled(run) == {"q1"}
    assert again.scored(run, "code") == {"q1"}
    assert again.items("toy") == list(a_benchmark().items)
    again.close()


UNFIT = [("\x00", "a NUL character"), ("\ud800", "half a character")]


def with_item(**values: Any) -> Benchmark:
    """The benchmark with one changed item, made past the checks of its fields."""
    benchmark = a_benchmark()
    changed = benchmark.items[1].model_copy(update=values)
    return dataclasses.replace(benchmark, items=(benchmark.items[0], changed, *benchmark.items[2:]))


@pytest.mark.parametrize(("bad", "found"), UNFIT)
@pytest.mark.parametrize("field", ["id", "group", "tags"])
def test_names_that_no_database_takes_are_refused_by_every_store(url: str, bad: str, found: str, field: str) -> None:
    store = Store(url)
    name = f"q{bad}"
    values: dict[str, Any] = {field: {name: "x"} if field == "tags" else name}
    with pytest.raises(InputError, match=rf"^item 'q.?.?', field '{field}': found {found}.*in 'q\ufffd', expected"):
        store.add_benchmark(with_item(**values))
    assert store.benchmark_names() == []
    store.add_benchmark(a_benchmark())
    for system, condition in ((name, "video"), ("one", name)):
        with pytest.raises(InputError, match=f"name: found {found}"):
            store.start_run("toy", system, condition, {})
    store.close()


def test_other_texts_of_an_item_are_kept_or_refused_by_every_store(url: str) -> None:
    store = Store(url)
    with pytest.raises(InputError, match=r"^item 'q1': found half a character .*, expected text that can be kept$"):
        store.add_benchmark(with_item(options=("a\ud800",)))
    whole = with_item(question="a\x00b", options=("c\x00",), tags={"half": "d\x00"})
    store.add_benchmark(whole)
    assert store.items("toy") == list(whole.items)
    store.close()


def test_only_a_failed_answer_is_replaced(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    store.write(run, [(an_answer("q0", Status.FAILED), []), (an_answer("q1", text="first"), [])])
    assert failed_items(store, run) == {"q0"}
    store.write(run, [(an_answer("q0", text="late"), []), (an_answer("q1", text="second"), [])])
    assert {name: answer.text for name, answer in store.answers(run).items()} == {"q0": "late", "q1": "first"}
    assert failed_items(store, run) == set()
    assert store.count_answers(run) == (2, 0)
    store.close()


def test_a_judgement_is_kept_once(url: str) -> None:
    store = Store(url)
    store.put(Judgement(key="k", judge="j", item_id="q0", reply={"score": 2}, flags=("prompt-injection",)))
    store.put(Judgement(key="k", judge="j", item_id="q0", reply={"score": 0}))
    judgement = store.get("k")
    assert judgement is not None
    assert judgement.reply == {"score": 2}
    assert judgement.flags == ("prompt-injection",)
    assert store.get("other") is None
    assert set(store.judgements(["k", "other"])) == {"k"}
    store.close()


def test_changed_items_are_refused(url: str) -> None:
    store = Store(url)
    a_run(store, a_benchmark())
    with pytest.raises(InputError, match=re.escape("changed: 4 items, first q0")) as raised:
        store.add_benchmark(a_benchmark(question="How many needles?"))
    assert "use another --store for the changed benchmark" in str(raised.value)
    assert store.items("toy")[0].question == "How many clips?"
    store.close()


def test_other_settings_under_one_name_are_refused(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    assert store.start_run("toy", "one", "video", {"seed": 0}) == run
    store.write(run, [(an_answer("q0"), [])])
    with pytest.raises(InputError, match=r"other settings \(seed 0 then, 1 now\), expected the same settings"):
        store.start_run("toy", "one", "video", {"seed": 1})
    store.close()


def test_a_run_without_a_settled_answer_takes_other_settings(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    failed = Answer(item_id="q0", status=Status.FAILED, reason="Connection error")
    store.write(run, [(failed, [])])
    assert store.start_run("toy", "one", "video", {"seed": 1}).settings == {"seed": 1}
    assert [one.settings for one in store.runs("toy")] == [{"seed": 1}]
    store.close()


def test_the_address_of_a_server_is_recorded_and_no_setting(url: str) -> None:
    store = Store(url)
    store.add_benchmark(a_benchmark())
    here: dict[str, JsonValue] = {"system": {"models": [{"base_url": "http://a/v1"}]}}
    there: dict[str, JsonValue] = {"system": {"models": [{"base_url": "http://b/v1"}]}}
    run = store.start_run("toy", "one", "video", here)
    store.write(run, [(an_answer("q0"), [])])
    assert store.start_run("toy", "one", "video", here) == run
    moved = store.start_run("toy", "one", "video", there)
    assert (moved.id, moved.settings["servers"]) == (run.id, ["http://a/v1", "http://b/v1"])
    assert store.start_run("toy", "one", "video", here).settings["servers"] == ["http://a/v1", "http://b/v1"]
    assert stored_runs(store)[0]["servers"] == "http://a/v1, http://b/v1"
    store.close()


def test_an_unknown_item_is_refused_and_nothing_is_written(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    with pytest.raises(InputError, match="an answer to 'q9', expected a known item"):
        store.write(run, [(an_answer("q0"), []), (an_answer("q9"), [])])
    assert store.answers(run) == {}
    store.close()


def test_a_run_has_one_owner(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    context = multiprocessing.get_context("spawn")
    holding, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(url, holding, done))
    process.start()
    assert holding.wait(600)
    with pytest.raises(InputError, match="at work on it, expected one process a run"), store.owning([run]):
        raise AssertionError("two owners")
    process.kill()
    process.join()
    with store.owning([run]):  # the killed owner is known to be gone
        pass
    store.close()


def test_a_run_has_one_owner_within_a_process(url: str) -> None:
    store, other = Store(url), Store(url)
    run = a_run(store, a_benchmark())
    with store.owning([run]):
        for each in (store, other):
            with pytest.raises(InputError) as refused, each.owning([run]):
                raise AssertionError("two owners")
            assert str(refused.value) == (
                f"{store.shown}: run of one under video: found another one in this process at work on it, expected one "
                "process a run: wait for it, or stop it"
            )
        with pytest.raises(InputError, match="other settings"):  # they are not changed beneath the one at work
            other.start_run("toy", "one", "video", {"seed": 1})
    with other.owning([run]):
        pass
    store.close()
    other.close()


def test_an_owner_in_this_process_that_could_not_give_back_is_gone(url: str) -> None:
    store = Store(url)
    run = a_run(store, a_benchmark())
    with pytest.raises(InputError, match="expected a store"), store.owning([run]), store.writing() as connection:
        connection.execute(text("alter table runs rename to runs_elsewhere"))
    with store.writing() as connection:
        connection.execute(text("alter table runs_elsewhere rename to runs"))
    with store.owning([run]):
        pass
    store.close()


def test_settings_that_were_changed_since_a_run_was_planned_are_not_asked_under(url: str) -> None:
    store = Store(url)
    first = a_run(store, a_benchmark())
    store.start_run("toy", "one", "video", {"seed": 1})  # nobody has answered: it takes them
    with pytest.raises(InputError, match=r"other settings \(seed 1 then, 0 now\)"), store.owning([first]):
        raise AssertionError("asked under settings of another")
    store.close()


def test_a_shared_run_at_which_a_worker_is_takes_no_other_settings(url: str) -> None:
    store = Store(url)
    run, claims = a_run(store, a_benchmark()), ItemClaims(store)
    with claims.sharing([run]):
        assert claims.take(run, ["q0"]) == ["q0"]
        with pytest.raises(InputError, match="other settings"):
            store.start_run("toy", "one", "video", {"seed": 1})
    assert store.start_run("toy", "one", "video", {"seed": 1}).settings == {"seed": 1}
    store.close()


def _hold(url: str, holding: object, done: object) -> None:
    store = Store(url)
    with store.owning(store.runs("toy")):
        holding.set()  # type: ignore[attr-defined]
        done.wait(600)  # type: ignore[attr-defined]


def test_two_processes_write_to_one_store(url: str) -> None:
    store = Store(url)
    benchmark = a_benchmark(200)
    runs = [a_run(store, benchmark, system) for system in ("one", "two", "three")]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_all, args=(url, run)) for run in runs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert [store.count_answers(run) for run in runs] == [(200, 0)] * 3
    store.close()


def _write_all(url: str, run: Run) -> None:
    store = Store(url)
    for item in store.items("toy"):
        store.write(run, [(an_answer(item.id), [Score(item_id=item.id, metric="accuracy", value=1.0)])])
    store.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: path.write_bytes(b"not a database at all, but a text of some length" * 9),
            "file is not a database",
        ),
        (lambda path: path.mkdir(), "found a folder, expected a store"),
        (lambda _: None, "found no such file, expected a store"),
        (lambda path: sqlite3.connect(path).execute("create table meta_of_others (a)").close(), "no Proctor tables"),
    ],
)
def test_what_is_no_store_is_told_so(make: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path)  # type: ignore[operator]
    with pytest.raises(InputError, match=re.escape(message)):
        Store(path, create=False)


def test_a_newer_store_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("update meta set value = '99'")
    connection.close()
    with pytest.raises(InputError, match="found a store of version 99, expected version 4: update Proctor to open it"):
        Store(path)


def test_judgements_without_answers_name_the_command_that_brings_them(tmp_path: Path) -> None:
    """What a judge has said may be all that there is: `store delete --all` keeps it."""
    file = tmp_path / "judgements.db"
    store = Store(file)
    store.put(Judgement(key="a" * 64, judge="a-judge", item_id="E1", reply={"score": 2}))
    expected = f"answers beside them: proctor import mediqa-eval PATH --data FOLDER --store {file}"
    with pytest.raises(InputError, match=re.escape(f"{file}: found judgements and no answers, expected {expected}")):
        store.items("mediqa-eval")
    store.close()


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InputError) as raised:
        Store("postgresql+psycopg://me:s3cret@127.0.0.1:1/none")
    assert "s3cret" not in str(raised.value)


def test_an_unknown_benchmark_is_told_what_there_is(url: str) -> None:
    store = Store(url)
    a_run(store, a_benchmark())
    with pytest.raises(InputError, match="found no benchmark 'tory', expected one of toy"):
        store.items("tory")
    store.close()


def test_an_answer_is_on_disk_when_write_returns(tmp_path: Path) -> None:
    """The process ends without closing anything: what `write` returned from is there all the same."""
    path = tmp_path / "runs.db"
    store = Store(path)
    run = a_run(store, a_benchmark())
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_write_and_die, args=(str(path), run))
    process.start()
    process.join(600)
    assert process.exitcode == 9
    assert store.settled(run) == {"q0"}
    store.close()


def _write_and_die(url: str, run: Run) -> None:
    Store(url).write(run, [(an_answer("q0"), [])])
    os._exit(9)
