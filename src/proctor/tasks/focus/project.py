"""`proctor build new --kind focus`: from videos to tracks of instances, by the stages of the challenge's annotation."""

from __future__ import annotations

from pathlib import Path

from proctor.construction.annotators import STAGES
from proctor.construction.pipeline import ProjectKind
from proctor.construction.sources import SourcesStage

KIND = ProjectKind(
    "focus",
    "Tracks of foreign objects, by several annotators",
    (SourcesStage(), *STAGES),
    Path(__file__).with_name("project.yaml"),
)
