"""`proctor build new --kind rexsonovqa`: from narrated videos to questions about clips of them."""

from __future__ import annotations

from pathlib import Path

from proctor.construction.pipeline import EventsStage, NormaliseStage, ProjectKind, TranscriptStage

KIND = ProjectKind(
    "rexsonovqa",
    "Questions about clips of narrated videos",
    (TranscriptStage(), NormaliseStage(), EventsStage()),
    Path(__file__).with_name("project.yaml"),
)
