"""Tables for people say what the same command says for programs: each column's text is worked out from the JSON.

The runs differ in every count, so that columns that were exchanged, wrong signs and wrong denominators show.
"""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.core import HEADS, Status
from tests.support.contest import NAME, Given, contest_store, skilled, write_run
from tests.support.program import proctor

ITEMS = 120
DRAWS = ("--draws", "100")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four systems on 120 questions; what two of them lack is of several kinds, each another number of times."""
    folder = tmp_path_factory.mktemp("told")
    made = contest_store(folder, ITEMS, failed=None)
    lacking: dict[str, Mapping[Status | None, range]] = {
        "strong": {Status.ERROR: range(5), Status.REFUSED: range(5, 9)},
        "weak": {Status.FAILED: range(3), None: range(3, 5), Status.TIMED_OUT: range(8, 9)},
    }
    rates = {"strong": (0.9, 0.7), "weak": (0.5, 0.3), "base": (0.4, 0.45), "fair": (0.85, 0.6)}
    for number, (system, (easy, hard)) in enumerate(rates.items(), start=1):
        answers: list[Given] = [*skilled(easy, hard, ITEMS, number)]
        for status, rows in lacking.get(system, {}).items():
            for row in rows:
                answers[row] = status
        write_run(made, system, answers)
    write_run(made, "strong", skilled(0.6, 0.5, ITEMS, 5), condition="text-only")
    made.close()
    return folder / "contest.db"


def both(store: Path, command: str, *options: str) -> tuple[str, Any]:
    """What a command prints for people, and for programs."""
    given: tuple[str | Path, ...] = (command, NAME, "--store", store, *DRAWS, *options)
    shown, told = proctor(*given), proctor(*given, "--format", "json")
    assert (shown.returncode, told.returncode) == (0, 0), shown.stderr + told.stderr
    return shown.stdout, json.loads(told.stdout)


def table(out: str, title: str) -> list[list[str]]:
    """The cells below a title, its heads first; a cell without a text is left out."""
    lines = out.splitlines()
    found = []
    for line in lines[lines.index(title) + 1 :]:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) < 2:
            break
        found.append(cells)
    return found


def expected(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """The same from texts by head."""
    return [list(rows[0]), *([cell for cell in row.values() if cell] for row in rows)]


def share(one: float | None) -> str:
    return "–" if one is None else f"{100 * one:.1f} %"


def minus(text: str) -> str:
    return text.replace("-", "−")


def points(one: float) -> str:
    return minus(f"{100 * one:+.1f} pts") if one else "0.0 pts"


def ends(row: Mapping[str, Any]) -> str:
    return minus(f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f}")


def p_of(p: float | None) -> str:
    if p is None:
        return "–"
    if p < 0.001:
        return "< 0.001"
    return "1.00" if p >= 0.995 else f"{p:.{1 - math.floor(math.log10(float(f'{p:.1e}')))}f}"


COUNTS = {
    "Answered": "answered",
    "Failed": "failed",
    "Timed out": "timed_out",
    "Refused": "refused",
    "Error": "error",
    "Not asked": "missing",
}


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ((), "Contest: Accuracy (chance 50.0 %)"),
        (("--by", "level"), "Contest: Accuracy"),
        (("--failed", "wrong"), "Contest: Accuracy (chance 50.0 %)"),
        (("--failed", "exclude", "--two-level", "--seed", "4"), "Contest: Accuracy (chance 50.0 %)"),
    ],
)
def test_results(store: Path, options: tuple[str, ...], title: str) -> None:
    out, rows = both(store, "results", *options)
    wanted = []
    for row in rows:
        known = row["value"] is not None
        score = share(row["value"]) if known else f"{share(row['if_wrong'])} … {share(row['if_excluded'])}"
        wanted.append(
            {
                "System": row["system"],
                "Condition": row["condition"],
                **{name.capitalize(): level for name, level in row["facets"].items()},
                "Score": score,
                "95 % CI": ends(row),
                "Items": str(row["n"]),
                "Groups": str(row["groups"]),
                **{label: str(row[name]) for label, name in COUNTS.items()},
            }
        )
    assert table(out, title) == expected(wanted)
    head, *lines = out.splitlines()[1 : 2 + len(rows)]
    for label in ("Score", "95 % CI", "Items", "Groups", *COUNTS):  # numbers end where their head ends
        end = head.index(label) + len(label)
        assert all(line[:end].endswith(one[label]) for line, one in zip(lines, wanted, strict=True)), label
    weak = [row for row in rows if row["system"] == "weak"]
    sums = {name: sum(row[name] for row in weak) for name in ("answered", "failed", "timed_out", "missing")}
    assert sums == {"answered": 115, "failed": 3, "timed_out": 1, "missing": 2}


def test_comparison_of_two_runs(store: Path) -> None:
    out, (one,) = both(store, "compare", "--condition", "video", "--system", "strong", "--system", "weak")
    (a, b), (c, d) = one["table"]
    assert table(out, "Accuracy (code): strong / video compared with weak / video") == [
        ["strong ↓", "weak →", "correct", "incorrect", "Total"],
        ["correct", str(a), str(b), str(a + b)],
        ["incorrect", str(c), str(d), str(c + d)],
        ["Total", str(a + c), str(b + d), str(a + b + c + d)],
    ]
    wrong, excluded = points(one["difference_if_wrong"]), points(one["difference_if_excluded"])
    assert (
        f"strong / video minus weak / video {wrong} (missing = wrong), {excluded} (missing left out) "
        f"(95 % CI {ends(one)}), p {p_of(one['p'])}; {p_of(one['p_holm'])} adjusted for the 6 pairs of 4 systems; "
        f"{one['n']} items in {one['groups']} groups."
    ) in out
    assert (one["scored_only_first"], one["scored_only_second"]) == (5, 0)
    assert (one["n"], a + b + c + d) == (120, 115)
    assert "The second figure is on 115 items; left out: 5 items with a score of strong / video alone." in out
    assert one["difference_if_wrong"] == pytest.approx((a + b + 5 - 5 - (a + c)) / ITEMS, abs=0.05)


@pytest.mark.parametrize("pair", [("strong", "fair"), ("fair", "strong")])
def test_comparison_part_by_part(store: Path, pair: tuple[str, str]) -> None:
    first, second = pair
    names = ("--condition", "video", "--system", first, "--system", second, "--by", "level")
    out, rows = both(store, "compare", *names)
    wanted = [
        {
            "level": one["facets"]["level"],
            "Difference": points(one["difference"]),
            "95 % CI": ends(one),
            "p": p_of(one["p"]),
            "p (Holm)": p_of(one["p_holm"]),
            "Items": str(one["n"]),
            "Groups": str(one["groups"]),
        }
        for one in rows
    ]
    one = rows[0]
    title = f"Accuracy (code): {one['first']['system']} / video minus {one['second']['system']} / video"
    assert table(out, title) == expected(wanted)
    assert {row["p"] == row["p_holm"] for row in rows} != {True}


def remarks(row: Mapping[str, Any]) -> str:
    said = ["tie broken"] if row["tie_broken"] else []
    said += ["not above every baseline"] if row["below_line"] else []
    said += [f"{row['not_asked']} not asked"] if row["not_asked"] else []
    return ", ".join([*said, *([f"{row['failed']} failed"] if row["failed"] else [])])


def span(low: int, high: int) -> str:
    return f"{low} to {high}" if low < high else str(low)


@pytest.fixture(scope="module")
def ranked(store: Path) -> tuple[str, Any]:
    out, boards = both(store, "rank", "--baseline", "base", "--detail", "--mine", "fair", "--stability", "50")
    return out, boards[0]


def test_ranking(ranked: tuple[str, Any]) -> None:
    out, board = ranked
    wanted = [
        {
            "System": row["system"],
            "Rank": str(row["rank"]),
            "Score (copeland)": minus(f"{row['score']:+g}") if row["score"] else "0",
            "Won, lost, tied": f"{row['won']}–{row['lost']}–{row['tied']}",
            "Mean over buckets": share(row["mean"]),
            "Rank by mean (95 % CI)": f"{row['rank_by_mean']} ({span(row['rank_low'], row['rank_high'])})",
            "Win rate (all)": share(row["win_rate"]),
            "Win rate (tied)": share(row["win_rate_tied"]),
            "Rank in 95 % of resamples": span(row["resampled_rank_low"], row["resampled_rank_high"]),
            "First in resamples": share(row["p_first"]),
            "Remarks": remarks(row),
        }
        for row in board["systems"]
        if not row["baseline"]
    ]
    assert table(out, f"All questions ({board['questions']} in {board['groups']} groups)") == expected(wanted)
    assert [row["won"] for row in board["systems"] if not row["baseline"]] == [1, 1, 0]
    baselines = [row for row in board["systems"] if row["baseline"]]
    assert table(out, "Baselines: not ranked, in no test")[1:] == [
        [f"{row['system']} (baseline)", share(row["mean"])] for row in baselines
    ]


def rule_score(one: float) -> str:
    return minus(f"{one:.0f}" if float(one).is_integer() else f"{one:.3f}")


def test_details_of_a_ranking(ranked: tuple[str, Any]) -> None:
    out, board = ranked
    systems = [row for row in board["systems"] if not row["baseline"]]
    buckets = list(board["bucket_groups"])
    indices = {(row["system"], row["rule"]): f"{row['rank']} ({rule_score(row['score'])})" for row in board["rules"]}
    rules = list(dict.fromkeys(row["rule"] for row in board["rules"]))
    assert table(out, "Rank (score) under every rule, ties not broken") == [
        ["System", *rules],
        *([one["system"], *(indices[one["system"], rule] for rule in rules)] for one in systems),
    ]
    assert table(out, "Rank (accuracy) in each bucket") == [
        ["System", *buckets],
        *(
            [one["system"], *(f"{one['ranks'][name]} ({share(one['scores'][name])})" for name in buckets)]
            for one in systems
        ),
        ["base (baseline)", *(share(board["systems"][-1]["scores"][name]) for name in buckets)],
    ]
    names = [one["system"] for one in systems]
    duels = [
        [
            *(one["system"], str(index)),
            *(
                "–".join(str(one[f"buckets_{what}"][other]) for what in ("ahead", "behind", "tied"))
                for other in names
                if other != one["system"]
            ),
        ]
        for index, one in enumerate(systems, start=1)
    ]
    assert table(out, "Buckets won, lost and tied by the row against the column")[1:] == duels


def test_leads(ranked: tuple[str, Any]) -> None:
    out, board = ranked
    wanted = [
        {
            "Bucket": row["bucket"],
            "Questions": str(row["n"]),
            "Groups": str(row["groups"]),
            "Lead": points(row["lead"]),
            "95 % CI": ends(row),
            "p": p_of(row["p"]),
            "p (adjusted)": p_of(row["p_adjusted"]),
            "Verdict": row["verdict"],
        }
        for row in board["leads"]
    ]
    title = "fair compared with base; p is adjusted for the 2 buckets, and over all questions it is not"
    assert table(out, title) == expected(wanted)


TESTS, DIFFERENCES = ("p", "p_holm"), ("difference", "gain")
SHARES = ("value", "lowest", "whisker_low", "q1", "median", "q3", "whisker_high", "highest")


def cell(name: str, one: Any, percent: bool) -> str:
    """A value of an analysis as its tables show it."""
    if one is None or isinstance(one, bool):
        return {None: "–", True: "yes", False: "no"}[one]
    if not isinstance(one, float):
        return str(one)
    if name in TESTS:
        return p_of(one)
    if percent and name in DIFFERENCES:
        return points(one)
    if percent and name == "sd":
        return f"{100 * one:.1f} pts"
    return share(one) if percent and name in SHARES else minus(f"{one:.3f}")


def span_end(end: float, percent: bool) -> str:
    return f"{100 * end:.1f}" if percent else f"{end:.3f}"


def shown_row(name: str, row: Mapping[str, Any]) -> dict[str, str]:
    """A row with the heads of its columns; both ends of an interval are one column."""
    percent, found = name != "regression", {}
    for key, value in row.items():
        if key.endswith("_low") and key != "whisker_low":
            low, high = (row[f"{key.removesuffix('low')}{end}"] for end in ("low", "high"))
            found[HEADS["gain_ci" if key == "gain_low" else "ci"]] = (
                "–" if None in (low, high) else minus(" to ".join(span_end(end, percent) for end in (low, high)))
            )
        elif not (key.endswith("_high") and key != "whisker_high") and key != "adjusted_for":
            found[HEADS.get(key, key.replace("_", " ").capitalize())] = cell(key, value, percent)
    return found


def test_analysis(store: Path) -> None:
    out, tables = both(store, "analyze", "--baseline", "base", "--stability", "0")
    titles = {
        "regression": "Adjusted odds ratios for a correct answer (p is not adjusted)",
        "videos": "Variation between groups",
        "pairs": (
            "Paired differences; p (Holm) is adjusted for the 3 pairs of 3 systems, and apart for the 3 pairs of a system and a "
            "baseline"
        ),
        "ensembles": "Ensembles (p is not adjusted)",
    }
    for name, title in titles.items():
        rows = [row for row in tables[name] if row.get("part", "all") == row.get("format", "all") == "all"]
        shown = [shown_row(name, row) for row in rows]
        assert table(out, title) == expected(shown), name
    assert tables["gaps"] == []


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve questions, two systems, two raters, and five metrics, each with more noise than the one before."""
    folder, rng = tmp_path_factory.mktemp("rated"), random.Random(0)
    ratings, scores = ["item,system,rater,value"], ["item,system,m1,m2,m3,m4,m5"]
    for number in range(24):
        name, base = f"q{number // 2},{'ab'[number % 2]}", rng.random()
        ratings += [f"{name},{who},{base + 0.3 * rng.random():.3f}" for who in "xy"]
        scores.append(",".join([name, *(f"{base + 0.4 * noise * rng.random():.3f}" for noise in range(1, 6))]))
    (folder / "ratings.csv").write_text("\n".join(ratings) + "\n")
    (folder / "scores.csv").write_text("\n".join(scores) + "\n")
    return folder


def audited(folder: Path, *options: str, scores: str = "scores.csv") -> tuple[str, Any]:
    given: tuple[str | Path, ...] = (
        "audit",
        "--scores",
        folder / scores,
        "--ratings",
        folder / "ratings.csv",
        *DRAWS,
        *options,
    )
    shown, told = proctor(*given), proctor(*given, "--format", "json")
    assert (shown.returncode, told.returncode) == (0, 0), shown.stderr + told.stderr
    return shown.stdout, json.loads(told.stdout)


def plain(one: float) -> str:
    return minus(f"{one:.3f}")


def signed(one: float) -> str:
    return minus(f"{one:+.3f}")


def test_audit_of_several_metrics(rated: Path) -> None:
    """Five metrics make ten pairs, which are just few enough to be listed."""
    out, found = audited(rated, "--dimension", "quality")
    for name, board in zip(("mean over the dimensions", "quality"), found["boards"], strict=True):
        wanted = [
            {
                "Metric": row["metric"],
                "Rank": str(row["rank"]),
                "Ties": ", ".join(map(str, row["ties"])) or "–",
                **(
                    {
                        kind.capitalize().replace("tau", ""): plain(row[kind])
                        for kind in ("kendalltau", "pearson", "spearman")
                    }
                    if name == "quality"
                    else {}
                ),
                "Mean": plain(row["mean"]["value"]),
                "95 % CI": f"{plain(row['mean']['ci_low'])} to {plain(row['mean']['ci_high'])}",
            }
            for row in board["ranking"]
        ]
        assert table(out, f"All ratings, {name}") == expected(wanted)
        pairs = [
            {
                "Metric": row["first"],
                "Minus": row["second"],
                "Difference": signed(row["difference"]),
                "95 % CI": f"{plain(row['ci_low'])} to {plain(row['ci_high'])}",
                "p": p_of(row["p"]),
                "p (Holm)": p_of(row["p_holm"]),
            }
            for row in board["comparisons"]
        ]
        assert len(pairs) == 10
        assert table(out, f"All ratings, {name}: differences of the mean correlation") == expected(pairs)


def test_audit_of_one_metric(rated: Path) -> None:
    lines = (rated / "scores.csv").read_text().splitlines()
    (rated / "one.csv").write_text("".join(",".join(line.split(",")[:3]) + "\n" for line in lines))
    out, found = audited(rated, scores="one.csv")
    (metric,) = found["metrics"]
    kinds = {"Kendall": "kendalltau", "Pearson": "pearson", "Spearman": "spearman"}
    wanted = [
        {
            "Dimension": row["dimension"],
            "Dataset": row["dataset"],
            **{label: plain(row[name]["value"]) for label, name in kinds.items()},
            "Mean": plain(row["mean"]["value"]),
            "95 % CI": f"{plain(row['mean']['ci_low'])} to {plain(row['mean']['ci_high'])}",
            **{label: str(row[label.lower()]) for label in ("Ratings", "Answers", "Groups", "Raters")},
        }
        for row in metric["agreement"]
    ]
    assert table(out, "m1, All ratings: agreement with the raters") == expected(wanted)
    assert [row["ratings"] for row in metric["agreement"]] == [48]


def test_export(store: Path, tmp_path: Path) -> None:
    """CSV and JSON Lines hold the same rows, and these sum up to the results."""
    for name in ("rows.csv", "rows.jsonl"):
        done = proctor("export", NAME, "--store", store, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as opened:
        cells = list(csv.DictReader(opened))
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(cells) == len(rows)
    for one, other in zip(cells, rows, strict=True):
        for key, value in other.items():
            if isinstance(value, float | int) and not isinstance(value, bool):
                assert float(one[key]) == value, key
            elif isinstance(value, str):
                assert one[key].removeprefix("'") == value.removeprefix("'"), key
    done = proctor("results", NAME, "--store", store, *DRAWS, "--failed", "exclude", "--format", "json")
    for row in json.loads(done.stdout):
        own = [one for one in rows if (one["system"], one["condition"]) == (row["system"], row["condition"])]
        values = [one["value"] for one in own if one["value"] is not None]
        assert sum(values) / len(values) == pytest.approx(row["value"]), row["system"]
