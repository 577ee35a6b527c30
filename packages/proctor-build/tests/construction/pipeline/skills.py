"""A project of key frames for tests: one film, used as three sources."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from proctor_build.pipeline import Project, run_stages

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
