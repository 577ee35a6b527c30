"""`proctor build new --kind rexsonovqa`: from narrated videos to questions about clips of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.construction import pipeline
from proctor.construction.sources import SourcesStage
from proctor.core import OPTION_POOL, Region, write_whole
from proctor.core.formats import option_letters
from proctor.tasks.rexsonovqa.native import KINDS

TYPES = (
    pipeline.QuestionType(
        "Type1_ActionGoalReasoning",
        "which movement is made, and which view or region it is to reach (action and goal).",
    ),
    pipeline.QuestionType(
        "Type2_ArtifactResolutionOptimization",
        "what is changed (by the probe, the patient's position or a setting of the device), and which problem of the "
        "picture that resolves. Do not name the problem.",
    ),
    pipeline.QuestionType(
        "Type3_ProcedureContextPlanning",
        "at which step of the procedure the operator is, and what that step is for or what comes next. Do not describe "
        "the sequence of the clip.",
        events=2,
    ),
)
"""The three types of the paper (section 3.1), under the names of its files."""

_PROMPT = Path(__file__).with_name("project_question.txt.j2")


class NativeExport(pipeline.ExportStage):
    """ReXSonoVQA's tree: `benchmark_questions/{mcq,free}/VIDEO.json` and `video_metadata_new.json`. Times there are
    seconds of the trimmed video."""

    def write(self, project: pipeline.Project, questions: Sequence[pipeline.FinalQuestion], folder: Path) -> None:
        sources = {source.id: source for source in project.settings.sources}
        for kind in KINDS:
            by_source: dict[str, list[dict[str, JsonValue]]] = {}
            for question in questions:
                if question.kind == kind:
                    by_source.setdefault(question.source, []).append(_entry(question, sources[question.source]))
            (folder / "benchmark_questions" / kind).mkdir(parents=True)
            for name, entries in by_source.items():
                write_whole(folder / "benchmark_questions" / kind / f"{name}.json", pipeline.as_json(entries))
        used = {question.source for question in questions}
        metadata = {name: _video(project, one) for name, one in sources.items() if name in used}
        write_whole(folder / "video_metadata_new.json", pipeline.as_json(metadata))


def _entry(final_question: pipeline.FinalQuestion, source: pipeline.SourceVideo) -> dict[str, JsonValue]:
    letters = option_letters(len(final_question.options))
    listed = [f"{letter}. {text}" for letter, text in zip(letters, final_question.options, strict=True)]
    return {
        "question": "\n".join(
            [f"[{'MCQ' if final_question.kind == 'mcq' else 'FREE'}] {final_question.text}", *listed]
        ),
        "answer": final_question.answer if final_question.key is None else letters[final_question.key],
        "groundtruth": final_question.groundtruth,
        "time_start": round(max(0.0, final_question.start - source.start), 3),
        "time_end": round(min(final_question.end, source.end or final_question.end) - source.start, 3),
        "keep": True,
        "question_type": final_question.type,
        **({OPTION_POOL: final_question.pool} if final_question.pool else {}),
        **({"split": final_question.part} if final_question.part else {}),
    }


def _video(project: pipeline.Project, source: pipeline.SourceVideo) -> dict[str, JsonValue]:
    region = source.region or Region(x=0.0, y=0.0, width=1.0, height=1.0)
    seconds = pipeline.video_seconds(project.path(source, "video"))
    return {
        "youtube_url": source.provenance,
        "start_time": source.start,
        "end_time": round(min(seconds, source.end or seconds), 3),
        "roi": {"x_prop": region.x, "y_prop": region.y, "w_prop": region.width, "h_prop": region.height},
        **({"category": source.category} if source.category else {}),
    }


KIND = pipeline.ProjectKind(
    "rexsonovqa",
    "Questions about clips of narrated videos",
    (
        SourcesStage(),
        pipeline.TranscriptStage(),
        pipeline.NormaliseStage(),
        pipeline.EventsStage(),
        pipeline.QuestionsStage(TYPES, _PROMPT),
        pipeline.ScreenStage(),
        pipeline.RepairStage(TYPES, _PROMPT),
        pipeline.ReviewStage(),
        pipeline.SplitStage(),
        NativeExport(),
    ),
    Path(__file__).with_name("project.yaml"),
)
