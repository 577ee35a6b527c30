"""Event logs beside videos: the references of key frames say why they stand in their order."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from proctor.core import InputError
from proctor.tasks.clinicalskillqa.construction import (
    InstancePlan,
    LoggedEvent,
    build_instances,
    rationale,
    read_events,
)
from proctor.tasks.simulated import simulate


def event(start: float, end: float, text: str) -> LoggedEvent:
    return LoggedEvent(start=start, end=end, text=text)


def test_what_is_seen_and_what_happens_between() -> None:
    log = [
        event(0, 1, "too early"),
        event(2, 5.5, "compressions go on."),
        event(6.1, 6.9, "the pads are placed"),
        event(7, 9, "everyone stands clear"),
        event(9.5, 12, "too late"),
    ]
    assert rationale("DBAC", [2.0, 4.0, 6.0, 7.0], log) == (
        "In D and B compressions go on. Between A and C the pads are placed. In C everyone stands clear."
    )
    assert rationale("BA", [1.1, 1.9], log) == ""
    assert rationale("CAB", [2, 3, 4], log) == "In C, A and B compressions go on."


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{}", "field 'events': found nothing, expected Field required"),
        ("[]", "found a list, expected Input should be an object"),
        (
            '{"events": [{"start": 3, "end": 1, "text": "x"}]}',
            "field 'events.0': found a dict, expected an end from 3 on",
        ),
        (
            '{"events": [{"start": 1, "end": 1, "kind": "seen"}]}',
            "field 'events.0': found a dict, expected a text, or a kind (inserted, ",
        ),
        ('{"events": [{"start": -1, "end": 1, "text": "x"}]}', "field 'events.0.start': found -1, expected"),
        ("no", "found broken JSON ("),
    ],
)
def test_logs_that_are_refused(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "v.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_events(tmp_path, "v.mp4")
    assert str(caught.value).startswith(f"{tmp_path / 'v.json'}: {text}")


def test_a_video_without_a_log_is_named_before_anything_is_written(tmp_path: Path) -> None:
    source = simulate(tmp_path / "sim", videos=1, seconds=8, fps=5, size=(256, 144), seed=2, questions_per_video=1)
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputError, match=r"sim-000.json: found no such file, expected the event log of sim-000.mp4"):
        build_instances(source / "videos", tmp_path / "task", events=tmp_path / "logs", cache=tmp_path / "c")
    assert not (tmp_path / "task").exists()


def test_references_of_simulated_videos_say_why(tmp_path: Path) -> None:
    """Each rationale is told from the script: its frames are those at whose time the event is under way, and it says
    things in the order in which they begin. The frames themselves are the same as without a log."""
    source = simulate(tmp_path / "sim", videos=3, seconds=12, fps=5, size=(256, 144), seed=2, questions_per_video=1)

    def made(name: str, **options: Any) -> dict[str, bytes]:
        out, plan = tmp_path / name, InstancePlan(per_video=3, seconds=3, seed=4)
        build_instances(source / "videos", out, plan, cache=tmp_path / "cache", **options)
        found = {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        about = json.loads(found.pop("about.json"))
        assert about["events"] is bool(options)
        return found

    plain, told = made("plain"), made("told", events=source / "events")
    rows = [json.loads(line) for line in told.pop("references.jsonl").decode().splitlines()]
    bare = [json.loads(line) for line in plain.pop("references.jsonl").decode().splitlines()]
    assert plain == told
    assert bare == [{**row, "rationale": ""} for row in rows]
    assert sum(bool(row["rationale"]) for row in rows) > len(rows) / 2
    for row in rows:
        log = read_events(source / "events", row["video"])
        assert all(a.start <= b.start for a, b in pairwise(log))
        said = [one.said for one in log if one.said in row["rationale"]]
        seen = {one.said for one in log if any(one.start <= time <= one.end for time in row["times"])}
        assert seen <= set(said)
