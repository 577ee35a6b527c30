"""What `results`, `report` and an unknown command say: tables by facet, wrong folders, what was meant."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor import api
from proctor.cli.output import OutputFormat, at_work, show
from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Metric, Reference, Score, VideoClip, natural
from proctor.core.formats import BinaryFormat
from proctor.reports import p_words
from proctor.results import Options, results
from proctor.runs import Store
from tests.support.contest import NAME, contest_store, skilled, write_run
from tests.support.program import proctor, within


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one run: 24 questions with yes or no, in two kinds."""
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number % 6}",
            question=f"Is clip {number} closed?",
            answer=BinaryFormat(),
            reference=Reference(answer=number % 3 == 0),
            tags={"kind": f"stage {9 + number % 2}"},
        )
        for number in range(24)
    )
    benchmark = Benchmark(
        name="clips", title="Clips", items=items, metrics=(ACCURACY,), headline="accuracy", facets=("kind",)
    )
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    run = store.start_run("clips", "one", "video", {})
    score = Score(item_id="", metric="accuracy", value=1.0)
    store.write(
        run,
        [
            (Answer(item_id=item.id, text="yes", parsed=True), [score.model_copy(update={"item_id": item.id})])
            for item in items
        ],
    )
    store.close()
    return tmp_path / "runs.db"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_chance_level_stands_over_all_items_and_over_no_part(path: Path) -> None:
    """The level of all items is not that of a facet's."""
    whole = proctor("results", "clips", "--store", path)
    split = proctor("results", "clips", "--store", path, "--by", "kind")
    assert whole.returncode == split.returncode == 0, split.stderr
    assert "50.0 %)" in whole.stdout.splitlines()[0]
    assert "50.0 %" not in split.stdout


def test_values_stand_in_one_natural_order(path: Path) -> None:
    split = proctor("results", "clips", "--store", path, "--by", "kind").stdout
    assert split.index("stage 9") < split.index("stage 10")
    assert sorted(["≥20 s", "10-20 s", "stage 10", "<5 s", "stage 9", "5-10 s"], key=natural) == [
        "<5 s", "5-10 s", "10-20 s", "≥20 s", "stage 9", "stage 10",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", [["results", "clips", "--by", "guessable"], ["report", "clips", "--draws", "100", "--out"]]
)
def test_reading_writes_nothing(command: list[str], path: Path, tmp_path: Path) -> None:
    before = digest(path)
    out = [str(tmp_path / "report.html")] if command[-1] == "--out" else []
    done = proctor(*command, *out, "--store", path)
    assert done.returncode == 0, done.stderr
    assert digest(path) == before


def test_the_item_audit_is_kept_where_a_store_is_named(path: Path) -> None:
    store = Store(path, create=False)
    split = results(store, "clips", Options(by=("guessable",), draws=100)).rows
    assert sum(row.n for row in split) == 24
    assert {row.facets["guessable"] for row in split} <= {"yes", "no"}
    store.close()


def test_an_audit_of_items_has_both_p_in_its_rows(path: Path) -> None:
    common = ("audit", "items", "clips", "--store", path, "--draws", "100")
    rows = list(csv.DictReader(io.StringIO(proctor(*common, "--format", "csv").stdout)))
    found = json.loads(proctor(*common, "--format", "json").stdout)
    both = [(one["p"], one["p_holm"]) for kind in found["formats"] for one in kind["baselines"]]
    assert [(float(row["p"]), float(row["p_holm"])) for row in rows] == both
    assert any(adjusted > p for p, adjusted in both)


def test_a_folder_of_media_that_is_not_there_is_an_error(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = proctor("report", "clips", "--store", path, "--media", tmp_path / "wrong", "--out", out)
    assert done.returncode == 1
    assert done.stderr == (
        f"proctor: {tmp_path / 'wrong'}: found no such folder, expected the folder of the benchmark's media\n"
    )
    assert not out.exists()


def test_a_folder_without_the_media_is_an_error_and_a_gap_is_said(tmp_path: Path) -> None:
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question="Is it closed?",
            answer=BinaryFormat(),
            reference=Reference(answer=True),
            media=(VideoClip(source=f"v{number}.mp4", start=0.0, end=1.0),),
        )
        for number in range(5)
    )
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(Benchmark(name="clips", title="Clips", items=items, metrics=(ACCURACY,), headline="accuracy"))
    run = store.start_run("clips", "one", "video", {})
    answers = [Answer(item_id=item.id, text="yes", parsed=True) for item in items]
    store.write(run, [(one, [Score(item_id=one.item_id, metric="accuracy", value=1.0)]) for one in answers])
    store.close()
    media, out = tmp_path / "media", tmp_path / "report.html"
    media.mkdir()
    command = ("report", "clips", "--store", tmp_path / "runs.db", "--media", media, "--out", out)
    code, said = within(*command, "--draws", "100")
    assert code == 1
    assert said == (
        f"proctor: {media}: found 0 of 5 media files, missing v0.mp4, v1.mp4, v2.mp4 …, "
        "expected the folder of the benchmark's media\n"
    )
    assert not out.exists()
    (media / "v3.mp4").write_bytes(b"no video")
    code, said = within(*command, "--draws", "100")
    assert code == 0, said
    assert f"{media}: found 1 of 5 media files, missing v0.mp4, v1.mp4, v2.mp4 …: their items have no pictures" in said


@pytest.mark.parametrize(("word", "meant"), [("leaderboard", "results"), ("resluts", "results"), ("xyzzy", None)])
def test_an_unknown_command_lists_those_there_are(word: str, meant: str | None) -> None:
    done = proctor(word)
    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert f"No such command '{word}'." in said
    assert ("Choose one of demo, list, fetch, sight, run, " in said) == (meant is None)
    assert (f"Did you mean 'proctor {meant}'?" in said) == (meant is not None)


def test_long_work_shows_that_it_goes_on_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    shown, silent = Terminal(), io.StringIO()
    with contextlib.redirect_stderr(shown), at_work("counting [x]"):
        pass
    with contextlib.redirect_stderr(silent), at_work("counting"):
        pass
    assert "counting [x]" in shown.getvalue()
    assert "0:00:0" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")  # the line is cleared
    assert silent.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("results", "clips"), "computing scores and intervals"),
        (("analyze", "clips", "--stability", "0"), "analyzing"),
        (("report", "clips", "--out", "{out}"), "writing the report"),
        (("audit", "items", "clips"), "auditing the items"),
    ],
)
def test_each_long_command_says_what_it_does(
    command: tuple[str, ...], told: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    @contextlib.contextmanager
    def record(what: str) -> Iterator[None]:
        said.append(what)
        yield

    for module in ("results", "report", "benchmarks"):
        monkeypatch.setattr(f"proctor.cli.{module}.at_work", record)
    code, _ = within(*(word.format(out=tmp_path / "r.html") for word in command), "--store", path, "--draws", "100")
    assert (code, said) == (0, [told])


@pytest.fixture
def two_metrics(tmp_path: Path) -> Path:
    """A store with two runs that have two metrics each."""
    speed = Metric(name="speed", label="Speed")
    items = tuple(
        Item(id=f"q{n}", group=f"v{n}", question="?", answer=BinaryFormat(), reference=Reference(answer=True))
        for n in range(6)
    )
    benchmark = Benchmark(name="clips", title="Clips", items=items, metrics=(ACCURACY, speed), headline="accuracy")
    with contextlib.closing(Store(tmp_path / "two.db")) as store:
        store.add_benchmark(benchmark)
        for system in ("one", "two"):
            run = store.start_run("clips", system, "video", {})
            answers = [Answer(item_id=item.id, text="yes", parsed=True) for item in items]
            scores = [
                [Score(item_id=item.id, metric=name, value=1.0) for name in ("accuracy", "speed")] for item in items
            ]
            store.write(run, list(zip(answers, scores, strict=True)))
    return tmp_path / "two.db"


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [((), ["accuracy", "speed"]), (("speed",), ["speed"]), (("speed", "accuracy"), ["accuracy", "speed"])],
)
def test_metrics_are_chosen_by_name(chosen: tuple[str, ...], shown: list[str], two_metrics: Path) -> None:
    words = [word for name in chosen for word in ("--metric", name)]
    done = proctor("results", "clips", "--store", two_metrics, "--format", "json", "--draws", "100", *words)
    rows = json.loads(done.stdout)
    assert [(row["system"], row["metric"]) for row in rows] == [
        (system, one) for system in ("one", "two") for one in shown
    ]
    table = api.results(two_metrics, metrics=chosen, draws=100)
    assert [row["metric"] for row in table.rows] == [row["metric"] for row in rows]


@pytest.mark.parametrize(
    ("command", "more"), [(("results",), {"two_level": True}), (("compare",), {}), (("rank", "--metric", "speed"), {})]
)
def test_every_object_of_json_says_how_it_was_drawn(
    two_metrics: Path, command: tuple[str, ...], more: dict[str, bool]
) -> None:
    options: tuple[str | Path, ...] = (
        "--store",
        two_metrics,
        "--format",
        "json",
        "--draws",
        "150",
        "--seed",
        "4",
        *(["--two-level"] if more else []),
    )
    rows = json.loads(proctor(command[0], "clips", *command[1:], *options).stdout)
    assert rows
    assert [row["settings"] for row in rows] == [{"draws": 150, "seed": 4, **more}] * len(rows)


def test_an_unknown_metric_is_told_with_those_that_there_are(two_metrics: Path) -> None:
    said = f"proctor: {two_metrics}: found no metric 'sped', expected one of accuracy, balanced_accuracy, mcc, speed; did you mean 'speed'?\n"
    for command in ("results", "compare"):
        done = proctor(command, "clips", "--store", two_metrics, "--metric", "accuracy", "--metric", "sped")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
    with pytest.raises(
        InputError, match="found no metric 'sped', expected one of accuracy, balanced_accuracy, mcc, speed"
    ):
        api.results(two_metrics, metrics="sped")


@pytest.mark.parametrize(
    ("with_it", "said"),
    [
        (("--flags",), "Judgements are of no metric. Leave out --flags or --metric."),
        (("--protocol", "official"), "--protocol prints one summary as a whole. Leave --metric out."),
    ],
)
def test_metrics_do_not_go_with_what_is_of_no_metric(with_it: tuple[str, ...], said: str, two_metrics: Path) -> None:
    done = proctor("results", "clips", "--store", two_metrics, "--metric", "speed", *with_it)
    assert done.returncode in {1, 2}
    assert done.stderr == f"proctor: {said}\n"


def test_no_flagged_judgement_is_a_header_alone_for_a_program_and_a_sentence_for_people(path: Path) -> None:
    def flags(*more: str) -> str:
        done = proctor("results", "clips", "--store", path, "--flags", *more)
        assert done.returncode == 0
        return done.stdout

    assert flags("--format", "csv").splitlines() == ["system,condition,item,judge,flags,reply,text"]
    assert flags().strip() == "clips: no flagged judgement"
    assert json.loads(flags("--format", "json")) == []


def test_a_table_without_records_prints_no_blank_line_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    show(OutputFormat.CSV, [])
    assert capsys.readouterr().out == ""


def test_a_run_that_no_judge_has_scored_does_not_stop_the_others_from_being_compared(tmp_path: Path) -> None:
    store = contest_store(tmp_path, failed=None, items=24, texts=24)
    write_run(store, "bad", ["wrong"] * 24)
    write_run(store, "good", ["right"] * 24)
    write_run(store, "waits", ["unscored"] * 24)
    done = proctor("compare", NAME, "--store", store.shown, "--metric", "accuracy", "--condition", "video")
    assert done.returncode == 0
    assert "bad / video minus good / video −100.0 pts" in done.stdout
    line = (
        "Not compared, as no scorer scored both sides: bad / video and waits / video; good / video and waits / video."
    )
    assert line in done.stderr
    assert line in api.compare(store, NAME, metrics="accuracy", conditions="video").notes
    alone = ("--system", "good/video", "--system", "waits/video")
    assert "found no metric that both are scored by" in proctor("compare", NAME, "--store", store.shown, *alone).stderr


def test_where_few_groups_decide_nothing_words_stand_for_p(tmp_path: Path) -> None:
    """Of five videos no p is 0.05 or less: tables say so, JSON and CSV carry it."""
    store = contest_store(tmp_path, items=60, videos=5)
    for number, name in enumerate(("first", "second", "third")):
        write_run(store, name, skilled(0.9 - 0.2 * number, 0.6, items=60, seed=number))
    said = ("compare", "contest", "--store", tmp_path / "contest.db", "--draws", "100")
    shown = proctor(*said)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("5 groups can't decide; 60 items in 5 groups.") == 3
    assert ", p " not in shown.stdout
    assert "Intervals are not adjusted for the number of comparisons." in shown.stderr
    parts = proctor(*said, "--by", "level")
    assert parts.stdout.count("5 groups can't decide") == 6
    for row in json.loads(proctor(*said, "--format", "json").stdout):
        assert row["decides"] is False
        assert row["p"] >= 0.0625
        assert row["ci_low"] < 0 < row["ci_high"]
    table = list(csv.DictReader(io.StringIO(proctor(*said, "--format", "csv").stdout)))
    assert [row["decides"] for row in table] == ["False"] * 3
    assert p_words(0.0625, 5) == "5 groups can't decide"
    assert (p_words(0.0625, 5, 0.9), p_words(0.03125, 6), p_words(None, 5)) == ("0.062", "0.031", "–")
