"""`proctor rank`: the boards of FOCUS from made-up submissions, whose order is known."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any, cast

import pytest

from proctor import api
from proctor.results import board_json
from tests.support.contest import NAME, contest_store, skilled, write_run
from tests.support.program import proctor

GROUPS = (
    ("object_recognition", "object_identification"),
    ("temporal_grounding", "temporal_localization"),
    ("aggregation", "object_aggregation"),
)
SKILLS = {"strong": 0.95, "fair": 0.7, "frontier": 0.5, "open": 0.45, "weak": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 yes-or-no questions on 20 videos, all of them in distribution; of one capability none is relevant."""
    path = tmp_path_factory.mktemp("rank")
    requests, references = [], []
    for number in range(300):
        name = f"q{number:03d}"
        requests.append(
            {
                "qID": name,
                "videoID": f"v{number % 20:02d}.mp4",
                "start_time": 0,
                "end_time": 600,
                "procedure_type": "sigmoid resection",
                "question": f"Is object {number} there?",
            }
        )
        references.append(
            {
                "qID": name,
                "primary": GROUPS[number % 3][1],
                "format": "binary",
                "format_kwargs": {},
                "answer": "yes" if number % 2 else "no",
                "ood": False,
                "clinical": number % 3 < 2,
            }
        )
    (path / "requests.json").write_text(json.dumps(requests))
    (path / "references.json").write_text(json.dumps(references))
    for system, skill in SKILLS.items():
        rng = random.Random(system)
        answers = [
            {"qID": one["qID"], "content": one["answer"] if rng.random() < skill else "perhaps", "latency": 1.0}
            for one in references
        ]
        (path / f"{system}.json").write_text(json.dumps(answers[10:] if system == "fair" else answers))
        done = proctor(
            *("import", "focus", path / f"{system}.json", "--data", path),
            *("--name", system, "--store", path / "runs.db"),
        )
        assert done.returncode == 0, done.stderr
    return path


def rank(folder: Path, *options: str) -> list[dict[str, Any]]:
    done = proctor(
        *("rank", "focus", "--store", folder / "runs.db", "--format", "json", "--draws", "500"),
        *("--stability", "100", "--baseline", "frontier", "--baseline", "open", *options),
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_two_boards_with_baselines_and_the_line(folder: Path) -> None:
    technical, clinical = rank(folder)
    assert (technical["board"], technical["questions"], technical["groups"]) == ("technical", 300, 20)
    assert (clinical["board"], clinical["questions"]) == ("clinical", 200)
    assert technical["settings"] == {
        "alpha": 0.05,
        "correction": "holm",
        "ties": "tied",
        "draws": 500,
        "stability": 100,
        "seed": 0,
    }
    assert clinical["empty_buckets"] == ["aggregation / in"]
    systems = {one["system"]: one for one in technical["systems"]}
    # Ranked ones first, then baselines, by their mean; nobody stands twice.
    assert [one["system"] for one in technical["systems"]] == ["strong", "fair", "weak", "open", "frontier"]
    assert {name for name, one in systems.items() if one["baseline"]} == {"frontier", "open"}
    assert {systems[name]["rank"] for name in ("frontier", "open")} == {None}
    assert {name: one["advances"] for name, one in systems.items() if one["advances"] is not None} == {
        "strong": True,
        "fair": True,
        "weak": False,
    }
    assert {name: one["below_line"] for name, one in systems.items()} == {
        "strong": False,
        "fair": False,
        "weak": True,
        "frontier": None,
        "open": None,
    }
    assert systems["fair"]["missing"] == 10
    assert systems["strong"]["score"] == 2.0  # of two rivals; baselines are in no duel
    assert systems["strong"]["chances"][0] > 0.9
    assert systems["weak"]["buckets_behind"]["strong"] == 3
    assert set(systems["strong"]["ranks"].values()) == {1}


def test_the_mean_is_that_of_the_buckets(folder: Path) -> None:
    for board in rank(folder):
        for one in board["systems"]:
            there = [score for score in one["scores"].values() if score is not None]
            assert one["mean"] == pytest.approx(sum(there) / len(there))


@pytest.mark.parametrize("rule", ["borda", "mean"])
def test_other_rules_on_request(folder: Path, rule: str) -> None:
    board = board_json(
        api.rank(
            folder / "runs.db", "focus", rule=cast("Any", rule), stability=0, baselines=["frontier", "open"]
        ).boards[0]
    )
    assert board["rule"] == rule
    assert [one["rank"] for one in board["systems"] if one["system"] in {"strong", "weak"}] == [1, 3]
    assert board["tau"] is None


def test_tables_and_csv(folder: Path) -> None:
    options = ("rank", "focus", "--store", folder / "runs.db", "--draws", "200", "--stability", "20")
    shown = proctor(*options, "--detail", "--baseline", "frontier")
    assert shown.returncode == 0, shown.stderr
    assert "not above every baseline" in shown.stdout
    assert "Tests at 0.05, adjustment holm; 200 draws for win rates, 20 samples for ranks" in shown.stderr
    pairs = shown.stdout.partition("Buckets won, lost and tied by the row against the column")[2].splitlines()
    cells = {words[0]: words[2:] for line in pairs[2:8] if (words := line.split())}
    assert "3–0–0" in cells["strong"]  # better than the weak one in all three buckets
    assert "0–3–0" in cells["weak"]
    assert "0–3–0" not in cells["strong"]
    assert "count for nothing: aggregation / in" in shown.stderr
    assert "Rank (score) under every rule" in shown.stdout
    lines = proctor(*options, "--format", "tsv").stdout.splitlines()
    assert lines[0].split("\t")[:6] == ["board", "rank", "system", "score", "won", "lost"]
    assert len(lines) == 1 + 2 * 7
    rows = list(csv.DictReader(io.StringIO(proctor(*options, "--format", "csv").stdout)))
    assert {row["board"] for row in rows} == {"technical", "clinical"}
    assert {row["system"] for row in rows if row["baseline"] == "True"} == {"random", "majority"}


def test_my_own_lead_bucket_by_bucket(folder: Path) -> None:
    technical, clinical = rank(folder, "--mine", "weak", "--stability", "0")
    assert {(one["bucket"], one["against"]) for one in technical["leads"]} == {
        (bucket, other)
        for bucket in ("all", "object_recognition / in", "temporal_grounding / in", "aggregation / in")
        for other in ("frontier", "open")
    }
    assert {one["verdict"] for one in technical["leads"]} == {"behind"}
    assert not any(one["bucket"] == "aggregation / in" for one in clinical["leads"])  # nobody was asked
    assert {one["rule"] for one in technical["rules"]} == {"copeland", "borda", "mean"}
    options = ("rank", "focus", "--store", folder / "runs.db", "--draws", "100", "--stability", "0")
    shown = proctor(*options, "--baseline", "frontier", "--mine", "strong")
    assert "strong compared with frontier" in shown.stdout
    assert "ahead" in shown.stdout
    wrong = proctor(*options, "--mine", "nobody")
    assert wrong.returncode == 1
    assert "found 'nobody', expected one of" in wrong.stderr


def test_leads_are_drawn_as_often_as_the_option_says(folder: Path) -> None:
    few, many = (rank(folder, "--mine", "fair", "--stability", "0", "--draws", draws)[0] for draws in ("100", "900"))
    assert (few["settings"]["draws"], many["settings"]["draws"]) == (100, 900)
    assert [row["ci_low"] for row in few["leads"]] != [row["ci_low"] for row in many["leads"]]
    assert [row["p"] for row in few["leads"]] == [row["p"] for row in many["leads"]]  # exact, without draws
    shown = proctor(
        *("rank", "focus", "--store", folder / "runs.db", "--stability", "0", "--mine", "fair", "--draws", "100")
    )
    assert (
        "Intervals: 95 %, over groups: exact for shares, bootstrap for other scores (100 draws, seed 0)."
        in shown.stderr
    )


def test_two_levels_on_request_are_recorded_and_wider(folder: Path) -> None:
    store = ("--store", folder / "runs.db", "--draws", "400")

    def width(rows: list[dict[str, Any]]) -> float:
        known = [row for row in rows if row["ci_low"] is not None]
        return float(sum(row["ci_high"] - row["ci_low"] for row in known))

    leads = [rank(folder, "--mine", "fair", "--stability", "0", *more)[0]["leads"] for more in ((), ("--two-level",))]
    assert [{row["two_level"] for row in one} for one in leads] == [{False}, {True}]
    assert width(leads[1]) > 1.1 * width(leads[0])
    assert [row["p"] for row in leads[0]] == [row["p"] for row in leads[1]]  # tests draw whole groups

    plain = proctor("results", "focus", *store, "--format", "json")
    done = proctor("results", "focus", *store, "--two-level", "--format", "json")
    assert (
        "Intervals: 95 %, over groups: exact for shares, bootstrap for other scores (400 draws, seed 0)."
        in plain.stderr
    )
    assert "Intervals: 95 %, bootstrap over groups, and over items within each, 400 draws" in done.stderr
    assert width(json.loads(done.stdout)) >= width(json.loads(plain.stdout))  # of shares the wider of both

    tables = [
        json.loads(proctor("analyze", "focus", *store, "--stability", "0", "--format", "json", *more).stdout)
        for more in ((), ("--two-level",))
    ]
    settings = [{row["setting"]: row["value"] for row in one["settings"]} for one in tables]
    assert [one["two_level"] for one in settings] == [False, True]
    assert (settings[0]["draws"], settings[0]["seed"], settings[0]["scored_by"]) == (400, 0, "code")
    for name in ("capabilities", "factors", "gaps", "scores"):
        assert width(tables[1][name]) >= width(tables[0][name]), name
    # An ensemble and its best member hardly differ: what the groups may not have shown is as wide either way.
    assert width(tables[1]["ensembles"]) > width(tables[0]["ensembles"])
    assert tables[0]["regression"] == tables[1]["regression"]

    refused = proctor("results", "focus", *store, "--two-level", "--protocol", "official")
    assert refused.returncode == 1
    assert "The figures of --protocol official have two levels as they are. Leave --two-level out" in refused.stderr


def test_answers_without_a_latency_are_late_or_in_time_as_asked(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    for system, rate in (("timed", 0.6), ("untimed", 0.9)):
        seconds = [2.0 if system == "timed" or number else None for number in range(240)]
        write_run(store, system, skilled(rate, rate), latency=seconds, budget_s=5.0)
    store.close()

    def board(*options: str) -> tuple[str, float]:
        common = ("--store", tmp_path / "contest.db", "--draws", "100", "--stability", "0", "--format", "json")
        (found,) = json.loads(proctor("rank", NAME, *common, *options).stdout)
        return found["latency"], {one["system"]: one["mean"] for one in found["systems"]}["untimed"]

    required, late = board()
    optional, in_time = board("--latency", "optional")
    assert (required, optional) == ("required", "optional")
    assert in_time - late == pytest.approx(1 / 240)  # one of the 120 easy questions, which are one of two buckets
    assert board("--latency", "required") == (required, late)


@pytest.mark.parametrize("option", [("--detail",), ("--mine", "fair"), ("--two-level",)])
def test_a_ranking_by_another_metric_has_no_boards(folder: Path, option: tuple[str, ...]) -> None:
    done = proctor("rank", "focus", "--store", folder / "runs.db", "--metric", "accuracy", *option)
    assert (done.returncode, done.stdout) == (2, "")
    wanted = "--metric ranks without --mine, --two-level and --detail. Leave them out."
    assert wanted in " ".join(done.stderr.split())


def test_other_buckets_and_wrong_names(folder: Path) -> None:
    board = rank(folder, "--by", "context,format")[0]
    assert list(board["p_values"]) == ["medium / binary"]
    for options, message in (
        (("--by", "colour"), "found no facet 'colour', expected one of answer_format, capabilities"),
        (("--baseline", "best"), "found no run of 'best', expected one of fair, frontier,"),
        (("--system", "best"), "found no run of 'best', expected one of fair, frontier,"),
        (("--condition", "audio"), "no run under audio. Choose one: --condition"),
    ):
        done = proctor("rank", "focus", "--store", folder / "runs.db", *options)
        assert done.returncode == 1
        assert message in done.stderr
