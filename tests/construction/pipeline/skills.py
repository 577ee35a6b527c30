"""A project of key frames for tests: one film, used as three sources."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from proctor.construction.pipeline import Project, run_stages
from tests.support.reviewers import Row, fill_in, reviewer, right_orders

ROLES = ("writer", "refiner", "checker")


def project(root: Path, film: Path, url: str, names: str = "abc", **stages: Any) -> Path:
    (root / "sources").mkdir(parents=True)
    (root / "sources" / "a.mp4").symlink_to(film / "videos" / "sim-000.mp4")
    model = {"base_url": url, "retries": 0, "structured": "prompted"}
    used = [{"id": name, "start": 8.0 * n, "end": 8.0 * n + 8, "category": "CPR"} for n, name in enumerate(names)]
    settings = {
        "kind": "clinicalskillqa",
        "name": "skills",
        "models": {role: model | {"name": f"openai:{role}"} for role in ROLES},
        "sources": [one | {"video": "sources/a.mp4", "group": f"g-{one['id']}", "licence": "CC0"} for one in used],
        "stages": {"frames": {"frames": [4], "per_video": 1, "seconds": 6}} | stages,
    }
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    return root


def ran(folder: Path, until: str = "", source: str = "") -> dict[str, str]:
    states = asyncio.run(run_stages(Project(folder), until=until, only=[source] if source else ()))
    return {one.stage: one.state for one in states}


def found(folder: Path, stage: str, unit: str = "a") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "work" / stage / f"{unit}.json").read_text())
    return content


def reviewed(folder: Path, a: dict[str, Row], b: dict[str, Row]) -> None:
    """Both tables, filled in; `a` and `b` say what is not kept."""
    from proctor.construction.pipeline import PROJECT_KINDS, records_of
    from proctor.tasks.clinicalskillqa.project.physicians import review_table

    opened, kind = Project(folder), PROJECT_KINDS.get("clinicalskillqa")
    frames, sentences = (records_of(opened, kind.stage(name)) for name in ("frames", "evidence"))
    for name, others in (("a", a), ("b", b)):
        table = folder / "sources" / f"physician-{name}.csv"
        table.write_text(review_table(frames, sentences), encoding="utf-8")
        fill_in(table, reviewer(right_orders(folder), f"Dr {name.upper()}", **others))


def decided(folder: Path, verdicts: dict[str, Row]) -> None:
    """The table of what was open, as both decided."""
    from proctor.construction.pipeline import PROJECT_KINDS, records_of
    from proctor.tasks.clinicalskillqa.project.consensus import consensus_table

    table = folder / "sources" / "consensus.csv"
    reviews = records_of(Project(folder), PROJECT_KINDS.get("clinicalskillqa").stage("physicians"))
    table.write_text(consensus_table(reviews), encoding="utf-8")
    fill_in(table, lambda row: row | verdicts[row["id"]] | {"by": "both"})
