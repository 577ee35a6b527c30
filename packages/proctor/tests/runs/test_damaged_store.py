"""A store that something else has changed: every reader says so in one line, and `check store` names the row."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.core import Answer, InputError, Judgement, Score
from proctor.results import Options, compare, load_answers, load_items, load_scores, rank_runs, results
from proctor.runs import Store, check_store
from proctor.stats import RankingPlan
from tests.runs.test_store import a_benchmark, a_run
from tests.support.program import proctor

VOTE = Judgement(key="a" * 64, judge="j", item_id="q0", reply={"score": 2})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whole") / "runs.db"
    store = Store(file)
    benchmark = a_benchmark(8)
    for number, system in enumerate(("one", "two")):
        run = a_run(store, benchmark, system)
        answers = [Answer(item_id=item.id, text="1", parsed=1) for item in benchmark.items]
        scores = [
            [Score(item_id=item.id, metric="accuracy", value=float((row + number) % 2))]
            for row, item in enumerate(benchmark.items)
        ]
        store.write(run, list(zip(answers, scores, strict=True)))
    store.put(VOTE)
    store.set_flags("toy", "guessable", {"q0": "yes"})
    store.close()
    return file


@pytest.fixture
def file(whole: Path, tmp_path: Path) -> Path:
    """A copy that may be spoiled."""
    for part in whole.parent.iterdir():
        shutil.copy(part, tmp_path / part.name)
    return tmp_path / "runs.db"


def damage(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def read_everything(file: Path) -> None:
    store = Store(file, create=False)
    try:
        store.items("toy")
        for run in store.runs("toy"):
            store.answers(run)
            store.settled(run)
            store.count_answers(run)
        items = load_items(store, store.card("toy"))
        for run in store.runs("toy"):
            load_answers(store, run, items, range(8))
            load_scores(store, run, items, range(8))
        store.judgements([VOTE.key])
        results(store, "toy", Options(draws=100, by=("half",)))
        compare(store, "toy", Options(draws=100))
        rank_runs(store, "toy", by=("half",), plan=RankingPlan(draws=100))
    finally:
        store.close()


def test_a_whole_store_is_found_whole(file: Path) -> None:
    read_everything(file)
    assert list(check_store(Store(file, create=False))) == []
    done = proctor("check", "store", "--store", file)
    assert (done.returncode, done.stdout) == (0, "Every row can be read.\n")


def test_of_many_damaged_rows_a_hundred_are_named_and_the_rest_counted(file: Path) -> None:
    connection = sqlite3.connect(file)
    columns = [column for _, column, *_ in connection.execute("pragma table_info(judgements)")]
    copied = ", ".join(
        {"key": "key || number", "body": "'yes'"}.get(column, f"judgements.{column}")
        for column in columns
        if column != "id"
    )
    named = ", ".join(column for column in columns if column != "id")
    numbers = "with recursive n(number) as (select 1 union all select number + 1 from n where number < 100)"
    connection.execute(f"insert into judgements ({named}) {numbers} select {copied} from judgements, n")
    connection.commit()
    told = proctor("check", "store", "--store", file)
    assert (told.returncode, len(told.stdout.splitlines())) == (1, 101)
    assert "more" not in told.stdout
    connection.execute("update judgements set body = 'yes'")
    connection.commit()
    connection.close()
    told = proctor("check", "store", "--store", file)
    *rows, more, damaged = told.stdout.splitlines()
    assert (told.returncode, len(rows), more) == (1, 100, "and 1 more")
    assert damaged.startswith("101 damaged: restore a copy")


DAMAGE: dict[str, tuple[str, str]] = {
    "a card that is no JSON": ("update benchmarks set card = 'junk'", "table benchmarks: "),
    "a card that is a list": ("update benchmarks set card = '[]'", "table benchmarks, row with name 'toy': "),
    "a card without metrics": (
        "update benchmarks set card = json_remove(card, '$.metrics')",
        "table benchmarks, row with name 'toy': metrics: missing",
    ),
    "an item that is no JSON": (
        "update items set body = '{' where item = 'q3'",
        "table items, row with item 'q3': Invalid JSON",
    ),
    "another item": (
        "update items set body = (select body from items where item = 'q1') where item = 'q3'",
        "table items, row with item 'q3': ValueError: the item in it is 'q1'",
    ),
    "tags that are no JSON": ("update items set tags = 'half' where item = 'q3'", ""),
    "tags that are a list": ("update items set tags = '[1]' where item = 'q3'", ""),
    "settings that are no JSON": ("update runs set settings = '{'", "table runs: a row that can't be read"),
    "an unknown status": (
        "update answers set status = 'perhaps' where item = 3",
        "table answers, row with run 1, item 3, repetition 0: ValueError: 'perhaps' is not a valid Status",
    ),
    "an answer that is no JSON": (
        "update answers set parsed = '[' where item = 3",
        "table answers, row with run 1, item 3, repetition 0: JSONDecodeError",
    ),
    "a text for a number": (
        "update answers set readable = 'many', requests = 'many' where item = 3",
        "table answers, row with run 1, item 3, repetition 0: requests: expected a whole number",
    ),
    "a text for a score": (
        "update scores set value = 'high' where item = 3",
        "table scores, row with run 1, metric 'accuracy', scorer 'code', item 3, repetition 0: TypeError",
    ),
    "an infinite score": (
        "update scores set value = 9e999 where item = 3",
        "table scores, row with run 1, metric 'accuracy', scorer 'code', item 3, repetition 0: ValueError: a value that is no finite",
    ),
    "a judgement that is no JSON": ("update judgements set body = 'yes'", "table judgements, row with key 'aaaa"),
    "an answer to no item": (
        "update answers set item = 999 where item = 3",
        "table answers: a row that belongs to no row of table items",
    ),
    "a table that is gone": ("drop table scores", "table scores: no such table: scores"),
    "a column that is gone": ("alter table answers rename column text to words", "table answers: no such column"),
}
HARMLESS = {"another item"}  # the check alone sees it


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_said_in_one_line_and_the_row_is_named(file: Path, name: str) -> None:
    statement, line = DAMAGE[name]
    damage(file, statement)
    if name in HARMLESS:
        read_everything(file)
    else:
        with pytest.raises(InputError, match=r"proctor check store names the rows$") as caught:
            read_everything(file)
        assert str(caught.value).startswith(f"{file}: found ")
    if line:
        found = list(check_store(Store(file, create=False)))
        assert any(one.startswith(line) for one in found), found


def zeroed(content: bytearray) -> None:
    content[-4 * 4096 :] = bytes(4 * 4096)  # the tables that come last: answers and scores


def shortened(content: bytearray) -> None:
    del content[len(content) // 2 :]


def no_head(content: bytearray) -> None:
    content[:100] = b"\xff" * 100


@pytest.mark.parametrize("spoil", [zeroed, shortened, no_head])
def test_damaged_pages_are_said_in_one_line(file: Path, spoil: Callable[[bytearray], None]) -> None:
    content = bytearray(file.read_bytes())
    spoil(content)
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_everything(file)
    assert str(caught.value).startswith(f"{file}: found ")
    assert "\n" not in str(caught.value)


def test_the_check_of_damaged_pages_says_which_tables_can_be_read(file: Path) -> None:
    """Where a store can't be opened, every command points to the check, which must not say the same again."""
    content = bytearray(file.read_bytes())
    connection = sqlite3.connect(file)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'orders'").fetchone()
    connection.close()
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(content)
    done = proctor("check", "store", "--store", file)
    assert done.returncode == 1
    assert "table orders: 0 rows can be read, then: database disk image is malformed" in done.stdout.splitlines()
    assert "table answers" not in done.stdout
    assert "names the rows" not in done.stdout + done.stderr
    last = "`sqlite3 OLD.db .recover | sqlite3 NEW.db` copies what can be read"
    assert done.stdout.splitlines()[-1].endswith(last) or "damaged" in done.stdout


@pytest.mark.parametrize("version", ["²", "", "-1", "1.0", "9" * 30, "0", "3", "5"])
def test_another_version_is_refused(file: Path, version: str) -> None:
    damage(file, f"update meta set value = '{version}'")
    with pytest.raises(InputError, match="found a store of version"):
        Store(file, create=False)


def test_the_command_names_the_rows_and_says_what_to_do(file: Path) -> None:
    damage(file, "update answers set status = 'perhaps' where item = 3")
    done = proctor("check", "store", "--store", file)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "table answers, row with run 1, item 3, repetition 0: ValueError: 'perhaps' is not a valid Status",
        "table answers, row with run 2, item 3, repetition 0: ValueError: 'perhaps' is not a valid Status",
        "2 damaged: restore a copy, or run the affected items again into another --store",
    ]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:secret@host:bad/db", "postgresql://***@host:bad/db: found invalid literal for int"),
        ("sqlite://///\x00", "found embedded null byte"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Store(url)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_store_in_a_place_that_takes_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "new" / "runs.db", tmp_path / ("x" * 300) / "runs.db"):
        with pytest.raises(InputError, match="expected a place for a store"):
            Store(path)


def test_of_many_damaged_rows_the_first_are_listed_and_the_others_counted(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.shell.file_checks._SHOWN", 3)
    damage(file, "update answers set status = 'perhaps'")
    said = proctor("check", "store", "--store", file).stdout.splitlines()
    assert len(said) == 5
    assert said[3] == "and 13 more"
    assert said[4].startswith("16 damaged: ")


def test_what_a_driver_raises_past_the_library_is_a_damaged_store(file: Path) -> None:
    """Rows are fetched past SQLAlchemy, so what a broken page does comes as it is."""
    store = Store(file, create=False)
    try:
        with pytest.raises(InputError, match=r"runs\.db") as raised, store.reading():
            raise sqlite3.DatabaseError("database disk image is malformed")
    finally:
        store.close()
    assert "\n" not in str(raised.value)
