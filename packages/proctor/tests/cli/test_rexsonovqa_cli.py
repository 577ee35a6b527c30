"""ReXSonoVQA on the command line, as the researcher and other programs use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from proctor.media import Excerpts, MediaLibrary
from proctor.tasks.rexsonovqa.reader import READER
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor, within

CONTRACT = {
    "system",
    "condition",
    "metric",
    "facets",
    "n",
    "answered",
    "failed",
    "groups",
    "value",
    "ci_low",
    "ci_high",
}


@pytest.fixture(scope="module")
def tree(data: Path) -> Path:
    return data / "rexsonovqa"


@pytest.fixture(scope="module")
def store(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "runs.db"
    for model in ("gemini-3-pro", "qwen3.5-397b"):
        done = proctor(
            "import", "rexsonovqa", tree / "results" / model, "--data", tree, "--name", model, "--store", path
        )
        assert done.returncode == 0, done.stderr
    return path


def rows(store: Path, *options: str) -> list[dict[str, Any]]:
    done = proctor("results", "rexsonovqa", "--store", store, "--format", "json", "--draws", "200", *options)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_results_keep_the_contract(store: Path) -> None:
    found = rows(store)
    assert all(set(row) >= CONTRACT for row in found)
    gemini = next(row for row in found if row["system"] == "gemini-3-pro" and row["metric"] == "accuracy")
    assert gemini["value"] == 165 / 249
    assert gemini["facets"] == {}
    assert (gemini["n"], gemini["answered"], gemini["failed"], gemini["groups"]) == (249, 249, 0, 47)
    assert gemini["ci_low"] < gemini["value"] < gemini["ci_high"]


def test_the_floor_stands_beside_every_system(store: Path) -> None:
    accuracy = {row["system"]: row["value"] for row in rows(store) if row["metric"] == "accuracy"}
    assert accuracy["shortest-option"] == 191 / 249
    assert {"random", "majority", "longest-option", "text-similarity"} <= set(accuracy)


def test_two_facets_at_once(store: Path) -> None:
    found = rows(store, "--by", "question_type,duration", "--system", "gemini-3-pro")
    accuracy = [row for row in found if row["metric"] == "accuracy"]
    assert {tuple(row["facets"]) for row in accuracy} == {("question_type", "duration")}
    assert sum(row["n"] for row in accuracy) == 249
    assert sum(round(row["value"] * row["n"]) for row in accuracy) == 165


def test_results_split_by_what_guessers_solve(store: Path) -> None:
    found = rows(store, "--by", "guessable", "--system", "gemini-3-pro")
    split = {row["facets"]["guessable"]: row["n"] for row in found if row["metric"] == "accuracy"}
    assert set(split) == {"yes", "no"}
    assert sum(split.values()) == 249


def test_the_composition_of_the_benchmark(store: Path) -> None:
    """Without an item, `show` counts: category by question type, as the paper's figure of the data set does."""

    def told(*options: str) -> list[dict[str, Any]]:
        code, text = within("show", "rexsonovqa", "--store", store, "--format", "json", *options)
        assert code == 0, text
        found: list[dict[str, Any]] = json.JSONDecoder().raw_decode(text)[0]
        return found

    each = {(row["facet"], row["value"]): (row["items"], row["groups"]) for row in told()}
    assert each["all", ""] == (514, 47)
    assert (each["format", "choice"], each["format", "free_text"]) == ((249, 47), (265, 47))
    for facet in ("question_type", "duration", "category"):
        assert sum(items for (name, _), (items, _) in each.items() if name == facet) == 514
    assert sum(groups for (name, _), (_, groups) in each.items() if name == "category") == 47
    both = told("--by", "category,question_type")
    assert len(both) == 6 * 3
    for category in {row["category"] for row in both}:
        assert sum(row["items"] for row in both if row["category"] == category) == each["category", category][0]
    assert told("--all-items")[0]["items"] == 657
    code, text = within("show", "rexsonovqa", "--store", store, "--by", "anatomy")
    assert (code, "found no facet 'anatomy', expected one of category" in text) == (1, True)


def test_shortest_option_run_by_hand(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    done = proctor(
        "run", "rexsonovqa", "--data", tree, "--system", "shortest-option", "--condition", "text-only", "--store", store
    )
    assert done.returncode == 0, done.stderr
    assert "Asked 249: 249 answered" in done.stdout
    row = next(row for row in rows(store) if row["system"] == "shortest-option")
    assert (row["condition"], row["value"]) == ("text-only", 191 / 249)


def test_the_item_audit_finds_the_rule_by_itself(tree: Path) -> None:
    done = proctor("audit", "items", "rexsonovqa", "--data", tree, "--format", "json", "--draws", "300")
    assert done.returncode == 0, done.stderr
    (choice,) = json.loads(done.stdout)["formats"]
    rules = [baseline for baseline in choice["baselines"] if baseline["kind"] == "rule"]
    assert rules[0]["name"] == "shortest-option"
    assert rules[0]["accuracy"]["value"] == 191 / 249
    assert choice["options"]["strictly_shortest"] == 191
    assert choice["selected"]["covers_chance"] is False


def test_comparing_conditions_and_systems(store: Path) -> None:
    done = proctor(
        "compare", "rexsonovqa", "--store", store, "--system", "gemini-3-pro", "--system", "qwen3.5-397b",
        "--metric", "accuracy", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)
    assert [sum(row) for row in one["table"]] == [165, 84]
    assert one["n"] == 249
    assert one["ci_low"] < one["difference"] < one["ci_high"]
    names = ("gemini-3-pro/video", "longest-option/text-only")
    code, text = within(
        "compare", "rexsonovqa", "--store", store, "--system", names[0], "--system", names[1], "--metric", "accuracy"
    )
    assert (code, "p < 0.001; 249 items" in text, "0.000" in text) == (0, True, False)


def test_a_lead_is_held_against_the_floor(store: Path) -> None:
    done = proctor(
        "compare", "rexsonovqa", "--store", store, "--system", "gemini-3-pro", "--against", "shortest-option/text-only",
        "--metric", "accuracy", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)
    assert [sum(row) for row in one["table"]] == [165, 84]
    assert one["second"] == {"system": "shortest-option", "condition": "text-only"}
    assert one["difference"] == pytest.approx((165 - 191) / 249)


def test_answers_that_wait_for_a_judge_are_shown(store: Path) -> None:
    waiting = [row for row in rows(store, "--system", "text-similarity") if row["metric"] == "rubric"]
    assert [(row["n"], row["value"], row["answered"], row["unscored"]) for row in waiting] == [(0, None, 265, 265)]


def test_export_has_the_contract_s_columns(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    done = proctor("export", "rexsonovqa", "--store", store, "--format", "jsonl", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    head = ["item", "group", "system", "condition", "status", "metric", "value", "text", "parsed", "latency_s", "extra"]
    assert all(list(line)[:11] == head for line in lines)
    gemini = [line for line in lines if line["system"] == "gemini-3-pro" and line["metric"] == "accuracy"]
    assert sum(line["value"] for line in gemini) == 165


def test_the_report_is_written(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = proctor("report", "rexsonovqa", "--store", store, "--out", out, "--draws", "200")
    assert done.returncode == 0, done.stderr
    assert "ReXSonoVQA" in out.read_text()


def test_missing_media_are_named_before_anything_is_asked(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with FaultyServer() as server:
        done = proctor(
            "run", "rexsonovqa", "--data", tree, "--media", tmp_path, "--model", "m", "--base-url", server.url,
            "--store", store,
        )  # fmt: skip
        assert server.requests == []
    assert done.returncode == 1
    assert "found 0 of 47 media files, missing 1st_Trimester_Scan, " in done.stderr
    assert done.stderr.count("yt-dlp") >= 47
    assert not store.exists()


def small_video(path: Path, seconds: float) -> None:
    """One grey frame a second, the left half dark and the right half light."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=1, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 256, 144, "yuv420p"
        pixels = np.full((144, 256, 3), 40, dtype=np.uint8)
        pixels[:, 128:] = 220
        for _ in range(int(seconds) + 1):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))


@pytest.fixture(scope="module")
def media(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("media")
    metadata = json.loads((tree / "video_metadata_new.json").read_text())
    for kind in ("mcq", "free"):
        for file in (tree / "benchmark_questions" / kind).glob("*.json"):
            known = metadata.get(file.stem) or metadata[f"{file.stem}_CC"]
            if not (folder / f"{file.stem}.mp4").exists():
                small_video(folder / f"{file.stem}.mp4", known["end_time"] - known["start_time"])
    return folder


def test_a_video_may_have_its_name_in_the_metadata(tree: Path, tmp_path: Path) -> None:
    """One published name differs: a suffix `_CC` in the metadata."""
    names = {file.stem for file in (tree / "benchmark_questions" / "mcq").glob("*.json")}
    known = json.loads((tree / "video_metadata_new.json").read_text())
    (other,) = {name for name in known if name not in names and name.removesuffix("_CC") in names}
    benchmark = READER.load(tree, tmp_path)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache", excerpts=Excerpts(benchmark.excerpts))
    items = [item for item in benchmark.items if item.group == other.removesuffix("_CC")]
    assert library.missing(items) == [other.removesuffix("_CC")]
    small_video(tmp_path / f"{other}.mp4", 2)
    assert library.missing(items) == []
    assert library.locate(other.removesuffix("_CC")).name == f"{other}.mp4"


def test_a_model_on_clips_with_and_without_video(tree: Path, media: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with FaultyServer("Answer: A") as server:
        done = proctor(
            "run", "rexsonovqa", "--data", tree, "--media", media, "--model", "my-model", "--base-url", server.url,
            "--condition", "video", "--condition", "text-only", "--limit", "12", "--max-frames", "4",
            "--settings", "temperature=0", "max_tokens=64", "--store", store, PROCTOR_CACHE=str(tmp_path / "frames"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 24
        pictures = sorted(len(request.image_bytes) for request in server.requests)
        assert pictures[:12] == [0] * 12
        assert all(1 <= count <= 4 for count in pictures[12:])
    accuracy = {
        row["condition"]: row for row in rows(store) if row["system"] == "my-model" and row["metric"] == "accuracy"
    }
    assert set(accuracy) == {"video", "text-only"}
    assert accuracy["video"]["value"] == accuracy["text-only"]["value"]


def test_whole_videos_are_noticed_and_cut_where_they_are_said_to_be_whole(tree: Path, tmp_path: Path) -> None:
    video = "Scanning_the_Appendix"  # seconds 66.29 to 147.8 of its source
    for kind in ("mcq", "free"):
        folder = tmp_path / "data" / "benchmark_questions" / kind
        folder.mkdir(parents=True)
        (folder / f"{video}.json").write_bytes((tree / "benchmark_questions" / kind / f"{video}.json").read_bytes())
    (tmp_path / "data" / "video_metadata_new.json").write_bytes((tree / "video_metadata_new.json").read_bytes())
    (tmp_path / "media").mkdir()
    small_video(tmp_path / "media" / f"{video}.mp4", 160)
    store = tmp_path / "runs.db"
    media = ("--media", tmp_path / "media")
    with FaultyServer("Answer: A") as server:
        asked = (
            "run", "rexsonovqa", "--data", tmp_path / "data", *media, "--model", "m", "--base-url", server.url,
            "--limit", "2", "--store", store, "--cache", tmp_path / "frames",
        )  # fmt: skip
        code, text = within(*asked)
        assert (code, server.requests) == (1, [])
        assert "found a video of 161.0 s, expected the excerpt of 81.5 s; for whole videos pass" in text
        done = proctor(*asked, "--media-as", "full")
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 2
    code, text = within("report", "rexsonovqa", "--store", store, *media, "--out", tmp_path / "r.html")
    assert code == 1
    assert "for whole videos pass --media-as full" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["results", "rexsonovqa", "--store", "none.db"], 1, "proctor: none.db: found no such file, expected a store"),
        (
            ["results", "rexsonovka", "--store", "{store}"],
            1,
            "found no benchmark 'rexsonovka', expected one of rexsonovqa",
        ),
        (
            ["results", "rexsonovqa", "--store", "{store}", "--by", "anatomy"],
            1,
            "found no facet 'anatomy', expected one of",
        ),
        (["results", "rexsonovqa", "--store", "{store}", "--failed", "maybe"], 2, "'maybe' is not one of"),
        (["run", "nothing", "--data", ".", "--system", "random"], 1, "unknown benchmark 'nothing': expected one of "),
        (["run", "rexsonovqa", "--data", "{tree}", "--system", "randm"], 1, "unknown system 'randm': expected one of"),
        (["run", "rexsonovqa", "--data", "{tree}"], 2, "Nothing to ask. Give --system NAME"),
        (
            ["run", "rexsonovqa", "--data", "{tree}", "--system", "random", "--condition", "blind"],
            1,
            "unknown condition 'blind': expected one of black,",
        ),
        (["run", "rexsonovqa", "--data", ".", "--system", "random"], 1, "video_metadata_new.json: found no such file"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (
            ["run", "focus", "--data", ".", "--system", "random", "--track", "segments"],
            1,
            "--track: found 'segments', expected one of frame, segment, procedure",
        ),
        (
            ["score", "rexsonovqa", "--store", "{store}", "--judge", "threelevel", "--model", "m"],
            1,
            "did you mean 'three-level'?",
        ),
        (["results", "rexsonovqa", "--store", "{store}", "--system", "gemini"], 1, "did you mean 'gemini-3-pro'?"),
        (["results", "focus", "--store", "{store}"], 1, "found no benchmark 'focus', expected one of rexsonovqa"),
        (
            ["export", "rexsonovqa", "--store", "{store}", "--format", "docx", "--out", "none.docx"],
            2,
            "--format 'docx' is unknown: choose one of jsonl, csv, parquet, xlsx",
        ),
        (
            ["run", "rexsonovqa", "--system", "random"],
            2,
            "Give the folder with the files of rexsonovqa (a store remembers it): --data rexsonovqa",
        ),
    ],
)
def test_wrong_arguments_end_in_one_line(
    arguments: list[str], code: int, message: str, store: Path, tree: Path, tmp_path: Path
) -> None:
    filled = [argument.format(store=store, tree=tree) for argument in arguments]
    done = proctor(*filled, PROCTOR_STORE=str(tmp_path / "new.db"))
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new.db").exists()


def test_changed_items_are_refused(store: Path, tree: Path) -> None:
    done = proctor(
        "run", "rexsonovqa", "--data", tree, "--system", "random", "--condition", "text-only", "--seed", "1", "--store", store
    )  # fmt: skip
    assert done.returncode == 1
    assert "answers to items with fingerprint" in done.stderr
    assert "expected the same items: use another --store" in done.stderr


@pytest.mark.parametrize(
    "command", ["list", "demo", "run", "import", "score", "results", "analyze", "compare", "report", "export"]
)
def test_every_command_of_the_contract_explains_itself(command: str) -> None:
    done = proctor(command, "--help")
    assert done.returncode == 0
    assert "Example: proctor " in done.stdout
