"""Challenges to be packed, from the data at hand, and what Codabench does with a bundle before it takes it."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from tests.support.paths import ROOT

SCHEMA = ROOT / "packages/proctor-challenge/tests/challenges/codabench_bundle.schema.json"
CANARY = "canary-6b1f"


def focus_challenge(folder: Path, data: Path, *, phases: str = "", videos: int = 6, most: int = 60) -> Path:
    """FOCUS on a few questions of the toolkit's data: hidden references, the answers of one baseline."""
    native = {name: json.loads((data / "focus-toolkit" / f"{name}.json").read_text()) for name in _NATIVE}
    chosen = sorted({one["videoID"] for one in native["requests"]})[:videos]
    asked = [one for one in native["requests"] if one["videoID"] in chosen][:most]
    forms = {one["qID"]: one for one in native["references"]}
    ids = {one["qID"] for one in asked}
    told = [
        {
            **one,
            "answer_format": forms[one["qID"]]["format"],
            "format_kwargs": forms[one["qID"]].get("format_kwargs", {}),
        }
        for one in asked
    ]
    for name in ("public/final", "sealed/final"):
        (folder / name).mkdir(parents=True)
        (folder / name / "requests.json").write_text(json.dumps(told))
    references = [one for one in native["references"] if one["qID"] in ids]
    (folder / "sealed/final/references.json").write_text(json.dumps(references))
    (folder / "sealed/base.json").write_text(json.dumps([one for one in native["responses"] if one["qID"] in ids]))
    (folder / "sealed/signing.key").write_text(CANARY)
    (folder / "challenge.yaml").write_text(FOCUS + (phases or FINAL))
    return folder


_NATIVE = ("requests", "references", "responses")
FOCUS = """\
title: "FOCUS: little & <b>bold</b>"
benchmark: focus
track: procedure
contact: organisers@example.org
baselines:
  - name: base
    answers: {final: sealed/base.json}
phases:
"""
FINAL = """\
  - name: final
    opens: 2026-03-01T09:30:00+02:00
    closes: 2026-12-01T00:00:00Z
    questions: public/final
    sealed: sealed/final
"""


def unpacked(bundle: Path, folder: Path) -> dict[str, Any]:
    """A bundle as the platform unpacks it: its YAML. Fails an assertion where the platform would refuse it."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    told: dict[str, Any] = yaml.safe_load((folder / "competition.yaml").read_text(encoding="utf-8"))
    faults = [f"{list(one.path)}: {one.message}" for one in Draft202012Validator(_schema()).iter_errors(told)]
    assert faults == []
    _files_are_there(told, folder)
    _phases_follow(told["phases"])
    tasks = [one["index"] for one in told["tasks"]]
    assert len(set(tasks)) == len(tasks)
    assert all(index in tasks for phase in told["phases"] for index in phase["tasks"])
    for column in ("key", "index"):
        given = [one[column] for one in told["leaderboards"][0]["columns"]]
        assert len(set(given)) == len(given)
    return told


def _schema() -> Any:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def _files_are_there(told: dict[str, Any], folder: Path) -> None:
    pages = [one["file"] for one in told["pages"]] + [told["terms"]]
    assert all((folder / name).read_text(encoding="utf-8") for name in pages)  # an empty page is refused
    parts = [phase[name] for phase in told["phases"] for name in ("starting_kit", "public_data")]
    parts += [task[name] for task in told["tasks"] for name in ("scoring_program", "reference_data")]
    assert all(zipfile.is_zipfile(folder / name) for name in parts)
    assert (folder / told["image"]).read_bytes().startswith(b"\x89PNG")


def _phases_follow(phases: list[dict[str, Any]]) -> None:
    """As `_validate_phase_ordering` of the platform's base_unpacker.py."""
    assert not phases[0].get("auto_migrate_to_this_phase")
    for before, after in pairwise(phases):
        assert "end" in before
        assert moment(before["end"]) < moment(after["start"])


def moment(text: str) -> datetime:
    """A date of the bundle, as the platform reads it."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
