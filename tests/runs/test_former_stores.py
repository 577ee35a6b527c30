"""Stores of former editions, made here by the SQL and the JSON that these wrote: today's program reads them and goes on
with them, or says in one line what to do."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ACCURACY, Benchmark, InputError, Item, Reference, VideoClip
from proctor.core.formats import BinaryFormat, FreeTextFormat
from proctor.results import Options, compare, results
from proctor.runs import ORACLE, Store, check_store
from tests.support.program import proctor

TABLES = """
create table meta (key varchar(40) primary key, value text not null);
create table benchmarks (id integer primary key, name varchar(200) not null unique, fingerprint varchar(64) not null,
  card json not null);
create table items (id integer primary key, benchmark integer not null references benchmarks (id),
  position integer not null, item text not null, group_name text not null, format varchar(40) not null,
  tags text not null, body text not null, unique (benchmark, item));
create table flags (item integer references items (id), name varchar(80), value text not null, primary key (item, name));
create table runs (id integer primary key, benchmark integer not null references benchmarks (id), system text not null,
  condition varchar(80) not null, settings json not null, created varchar(40) not null, owner text not null,
  owner_seen float not null, unique (benchmark, system, condition));
create table answers (run integer, item integer, status varchar(12) not null, readable integer not null,
  text text not null, parsed text not null, problem text not null, reason text not null, requests integer not null,
  input_tokens integer not null, output_tokens integer not null, cached_tokens integer not null, cost_usd float,
  model_s float, media_s float, queue_s float, retry_s float, extra text not null, primary key (run, item))
  without rowid;
create table scores (run integer, metric varchar(120), scorer varchar(200), item integer, value float not null,
  label text not null, judgement_key varchar(64) not null, primary key (run, metric, scorer, item)) without rowid;
create table judgements (id integer primary key, key varchar(64) not null unique, judge text not null, item text not null,
  body text not null);
create index judgements_by_item on judgements (item);
insert into meta values ('version', '1');
"""
FIELDS = ("low", "high", "higher_is_better", "percent", "chance", "formats", "levels")
VOTE = {"key": "a" * 64, "judge": "a-judge", "item_id": "q11", "reply": {"score": 2, "explanation": "Both say so."}}
VOTE |= {"flags": [], "usage": dict.fromkeys(("requests", "input_tokens", "output_tokens", "cached_tokens"), 0)}


def metric(name: str, *values: Any) -> dict[str, Any]:
    return {"name": name, "label": name.capitalize()} | dict(zip(FIELDS, values, strict=True))


# What a card held in the first edition: no buckets, no rule for failed items, no chance level, no folders, no rulings.
CARD = {
    "name": "clips",
    "title": "Clips",
    "metrics": [
        metric("accuracy", 0.0, 1.0, True, True, None, ["binary"], []),
        metric("rubric", 0.0, 2.0, True, False, None, ["free_text"], ["2", "1", "0"]),
    ],
    "headline": "accuracy",
    "facets": ["kind"],
    "conditions": ["video", "text-only"],
    "only": {},
    "seeds": {"options": 0},
    "notes": [],
    "simulated": False,
}
MEDIA = {"max_side": 512, "quality": 85, "max_frames": 64, "fps": 1.0}


def item(number: int) -> dict[str, Any]:
    """Eleven questions with yes or no, and one of free text, on three videos."""
    text = number == 11
    clip = {"kind": "video", "source": f"v{number % 3}.mp4", "start": 0.5, "end": None, "region": None}
    return {
        "id": f"q{number:02d}",
        "group": f"v{number % 3}",
        "question": f"Is clip {number} closed?",
        "answer": {"kind": "free_text", "max_chars": None} if text else {"kind": "binary"},
        "media": [clip],
        "options": [],
        "reference": {"answer": "the clip" if text else True, "accepted": [], "rationale": "It is seen."},
        "tags": {"kind": ("near", "far")[number % 2]},
    }


def benchmark() -> Benchmark:
    """The same, as a reader of today gives it."""
    made = [
        Item(
            id=one["id"],
            group=one["group"],
            question=one["question"],
            answer=FreeTextFormat() if one["id"] == "q11" else BinaryFormat(),
            media=(VideoClip(source=one["media"][0]["source"], start=0.5),),
            reference=Reference(answer=one["reference"]["answer"], rationale="It is seen."),
            tags=one["tags"],
        )
        for one in map(item, range(12))
    ]
    return Benchmark("clips", "Clips", tuple(made), (ACCURACY,), "accuracy", facets=("kind",))


def first_edition(file: Path) -> Path:
    """A model under two conditions, right on all but two and on none; and a baseline that uses the references."""
    connection = sqlite3.connect(file)
    connection.executescript(TABLES)
    connection.execute("insert into benchmarks values (1, 'clips', ?, ?)", (benchmark().fingerprint, json.dumps(CARD)))
    for number, one in enumerate(map(item, range(12)), start=1):
        row = (number, 1, number - 1, one["id"], one["group"], one["answer"]["kind"], json.dumps(one["tags"]))
        connection.execute("insert into items values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, _compact(one)))
    models = {
        "system": {"model": "m", "prompt_sha256": "b" * 64},
        "seed": 0,
        "budget_s": None,
        "oracle_baseline": False,
    }
    majority = {"system": {"learned_from": "the references of the same items"}, "media": {}, "seed": 0}
    majority |= {"budget_s": None, "oracle_baseline": True}
    runs = [
        ("a-model", "video", models | {"media": MEDIA}, 2),
        ("a-model", "text-only", models | {"media": {}}, 11),
        ("majority", "text-only", majority, 0),
    ]
    for run, (system, condition, settings, wrong) in enumerate(runs, start=1):
        values = (run, 1, system, condition, json.dumps(settings), "2026-08-01T10:00:00+00:00", "", 0.0)
        connection.execute("insert into runs values (?, ?, ?, ?, ?, ?, ?, ?)", values)
        for number in range(12):
            connection.execute(
                f"insert into answers values ({','.join('?' * 18)})", _answer(run, number, number < wrong)
            )
            score = (
                run,
                "accuracy",
                "code",
                number + 1,
                float(number >= wrong),
                "wrong" if number < wrong else "right",
            )
            if number < 11:
                connection.execute("insert into scores values (?, ?, ?, ?, ?, ?, '')", score)
    connection.execute("insert into scores values (1, 'rubric', 'a-judge', 12, 2.0, '2', ?)", (VOTE["key"],))
    connection.execute("insert into judgements values (1, ?, 'a-judge', 'q11', ?)", (VOTE["key"], json.dumps(VOTE)))
    connection.commit()
    connection.close()
    return file


def _compact(one: dict[str, Any]) -> str:
    return json.dumps(one, separators=(",", ":"))


def _answer(run: int, number: int, wrong: bool) -> tuple[Any, ...]:
    text, parsed = ("no" if wrong else "yes", json.dumps(not wrong))
    if number == 11:
        text, parsed = "the clip", json.dumps("the clip")
    return (run, number + 1, "answered", 1, text, parsed, "", "", 1, 90, 3, 0, None, 1.5, 0.0, 0.0, 0.0, "{}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return first_edition(tmp_path / "runs.db")


def test_a_store_of_the_first_edition_has_the_numbers_that_it_had(file: Path) -> None:
    store = Store(file, create=False)
    assert list(check_store(store)) == []
    rows = {(row.system, row.condition, row.metric): row for row in results(store, "clips", Options(draws=100)).rows}
    values = {name: (row.value, row.n, row.groups, row.policy) for name, row in rows.items() if row.value is not None}
    assert values == {
        ("a-model", "video", "accuracy"): (pytest.approx(9 / 11), 11, 3, ""),
        ("a-model", "text-only", "accuracy"): (0.0, 11, 3, ""),
        ("majority", "text-only", "accuracy"): (1.0, 11, 3, ""),
        ("a-model", "video", "rubric"): (2.0, 1, 1, ""),
    }
    by_kind = results(store, "clips", Options(draws=100, by=("kind",), systems=("a-model",), conditions=("video",)))
    assert {row.facets["kind"]: row.value for row in by_kind.rows if row.metric == "accuracy"} == {
        "near": pytest.approx(5 / 6),
        "far": pytest.approx(4 / 5),
    }
    found = compare(store, "clips", Options(draws=100, systems=("a-model",)), metrics=("accuracy",))
    assert [one.difference.value for one in found.comparisons] == [pytest.approx(9 / 11)]
    assert [bool(run.settings[ORACLE]) for run in store.runs("clips")] == [False, False, True]
    assert store.items("clips") == list(benchmark().items)
    assert store.judgements([str(VOTE["key"])])[str(VOTE["key"])].reply == VOTE["reply"]


def test_every_command_reads_a_store_of_the_first_edition(file: Path, tmp_path: Path) -> None:
    few, video = ("--draws", "100"), ("--condition", "video")
    for command in (
        ("list", "runs"),
        ("list", "metrics"),
        ("store", "check"),
        ("results", "clips", *few),
        ("results", "clips", "--by", "guessable", *few),
        ("compare", "clips", *few),
        ("rank", "clips", "--by", "kind", "--stability", "5", *few),
        ("analyze", "clips", "--stability", "5", *few),
        ("show", "clips", "q11"),
        ("items", "audit", "clips", *few),
        ("export", "clips", "--out", tmp_path / "rows.jsonl"),
        ("export", "clips", "--format", "judgements", "--scorer", "a-judge", *video, "--out", tmp_path / "said.jsonl"),
        ("report", "clips", "--out", tmp_path / "report.html", *few),
    ):
        done = proctor(*command, "--store", file)
        assert done.returncode == 0, (command, done.stderr)
    assert "Both say so." in (tmp_path / "said.jsonl").read_text(encoding="utf-8")
    assert "oracle baseline" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_run_of_the_first_edition_goes_on_and_the_store_remembers_more(file: Path) -> None:
    store = Store(file)
    store.add_benchmark(benchmark())
    before = next(run for run in store.runs("clips") if run.condition == "video")
    assert store.start_run("clips", "a-model", "video", before.settings) == before
    assert store.settled(before) == {one.id for one in benchmark().items}
    card = store.card("clips")
    assert card.metric("rubric").levels == ("2", "1", "0")
    assert card.metric("accuracy").formats == ACCURACY.formats


def test_other_items_are_refused_with_what_to_do(file: Path) -> None:
    changed = benchmark()
    first = changed.items[0].model_copy(update={"question": "Is it open?"})
    with pytest.raises(InputError, match=r"changed: 1 item, first q00\), expected the same items: use another --store"):
        Store(file).add_benchmark(Benchmark("clips", "Clips", (first, *changed.items[1:]), (ACCURACY,), "accuracy"))


def test_judgements_without_answers_name_the_command_that_brings_them(tmp_path: Path) -> None:
    """What `judge mediqa-eval --judgements FILE` wrote."""
    file = tmp_path / "mine.judgements.db"
    connection = sqlite3.connect(file)
    connection.executescript(TABLES)
    connection.execute("insert into judgements values (1, ?, 'a-judge', 'E1', ?)", (VOTE["key"], json.dumps(VOTE)))
    connection.commit()
    connection.close()
    done = proctor("results", "mediqa-eval", "--store", file)
    expected = f"answers beside them: proctor import mediqa-eval PATH --data FOLDER --store {file}"
    said = f"proctor: {file}: found judgements and no answers, expected {expected}\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert proctor("store", "check", "--store", file).returncode == 0
