"""The kind of project `clinicalskillqa`."""

from __future__ import annotations

from pathlib import Path

from proctor.construction.pipeline import ProjectKind
from proctor.construction.sources import SourcesStage
from proctor.tasks.clinicalskillqa.project.consensus import ConsensusStage
from proctor.tasks.clinicalskillqa.project.evidence import EvidenceStage
from proctor.tasks.clinicalskillqa.project.finish import InstancesExport, InstanceSplitStage
from proctor.tasks.clinicalskillqa.project.frames import FramesStage
from proctor.tasks.clinicalskillqa.project.physicians import PhysiciansStage
from proctor.tasks.clinicalskillqa.project.rationales import RationalesStage, RefineStage

KIND = ProjectKind(
    "clinicalskillqa",
    "Key frames in order, with rationales",
    (
        SourcesStage(),
        FramesStage(),
        RationalesStage(),
        RefineStage(),
        EvidenceStage(),
        PhysiciansStage(),
        ConsensusStage(),
        InstanceSplitStage(),
        InstancesExport(),
    ),
    Path(__file__).with_name("project.yaml"),
)
