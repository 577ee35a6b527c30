"""Proctor for builders of benchmarks: projects from narrated videos and from tracks, annotators, exchange of annotations,
screening and repair of questions, and the builders of FOCUS, ClinicalSkillQA and ReXSonoVQA."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_build.checks import Completion, complete, find
    from proctor_build.commands import Fps, ProcedureName, TrackFiles, completed
    from proctor_build.files import files_of
else:
    export_lazily(__name__)

__all__ = ["Completion", "Fps", "ProcedureName", "TrackFiles", "complete", "completed", "files_of", "find"]  # fmt: skip
