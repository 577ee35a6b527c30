"""`proctor build new --kind rexsonovqa`: from narrated videos to questions about clips of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from proctor.core import OPTION_POOL, Region, write_whole
from proctor.core.formats import option_letters
from proctor.tasks.rexsonovqa import KINDS, METADATA, item_id
from proctor_build import pipeline
from proctor_build.sources import SourcesStage

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

_HERE = Path(__file__).parent
_PROMPT = _HERE / "project_question.txt.j2"
_PAPER = {"paper": _HERE / "project_question.paper.txt.j2"}
_PAPER_OPTIONS = {"paper": _HERE / "project_distractors.paper.txt.j2"}


class NativeExport(pipeline.ExportStage):
    """ReXSonoVQA's tree: `benchmark_questions/{mcq,free}/VIDEO.json` and `video_metadata_new.json`. Times there are
    seconds of the trimmed video."""

    reader = "rexsonovqa"

    def write(
        self, project: pipeline.Project, questions: Sequence[pipeline.FinalQuestion], folder: Path
    ) -> pipeline.ExportedBenchmark:
        sources = {source.id: source for source in project.settings.sources}
        for kind in KINDS:
            by_source: dict[str, list[dict[str, JsonValue]]] = {}
            for question in questions:
                if question.kind == kind:
                    by_source.setdefault(question.source, []).append(_entry(question, sources[question.source]))
            for name, entries in by_source.items():
                (folder / "benchmark_questions" / kind).mkdir(parents=True, exist_ok=True)
                write_whole(folder / "benchmark_questions" / kind / f"{name}.json", pipeline.as_json(entries))
        used = {question.source for question in questions}
        metadata = {name: _video(project, one) for name, one in sources.items() if name in used}
        write_whole(folder / METADATA, pipeline.as_json(metadata))
        numbers = Counter[tuple[str, str]]()
        items = []
        for question in questions:
            numbers[question.source, question.kind] += 1
            name = item_id(question.source, question.kind, numbers[question.source, question.kind])
            items.append(_expected(name, question, sources[question.source]))
        return pipeline.ExportedBenchmark(items, [sources[name] for name in sources if name in used])


def _expected(name: str, final_question: pipeline.FinalQuestion, source: pipeline.SourceVideo) -> pipeline.ExportedItem:
    """A question as the reader must find it."""
    letters, key = option_letters(len(final_question.options)), final_question.key
    start, end = _times(final_question, source)
    return pipeline.ExportedItem(
        id=name,
        key=final_question.answer if key is None else letters[key],
        group=source.patient,
        question=final_question.text,
        options=final_question.options,
        rationale=final_question.groundtruth,
        span=(start, end),
        tags={
            **({"category": source.category} if source.category else {}),
            **({"split": final_question.part} if final_question.part else {}),
        },
    )


def _times(final_question: pipeline.FinalQuestion, source: pipeline.SourceVideo) -> tuple[float, float]:
    """Start and end in seconds of the trimmed video."""
    start = max(0.0, final_question.start - source.start)
    return round(start, 3), round(min(final_question.end, source.end or final_question.end) - source.start, 3)


def _entry(final_question: pipeline.FinalQuestion, source: pipeline.SourceVideo) -> dict[str, JsonValue]:
    start, end = _times(final_question, source)
    letters = option_letters(len(final_question.options))
    listed = [f"{letter}. {text}" for letter, text in zip(letters, final_question.options, strict=True)]
    return {
        "question": "\n".join(
            [f"[{'MCQ' if final_question.kind == 'mcq' else 'FREE'}] {final_question.text}", *listed]
        ),
        "answer": final_question.answer if final_question.key is None else letters[final_question.key],
        "groundtruth": final_question.groundtruth,
        "time_start": start,
        "time_end": end,
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
        **({"group": source.group} if source.group else {}),
    }


KIND = pipeline.ProjectKind(
    "rexsonovqa",
    "Questions about clips of narrated videos",
    (
        SourcesStage(),
        pipeline.TranscriptStage(),
        pipeline.NormaliseStage(),
        pipeline.EventsStage(),
        pipeline.QuestionsStage(TYPES, _PROMPT, _PAPER),
        pipeline.ScreenStage(),
        pipeline.RepairStage(TYPES, _PROMPT, named_drafts=_PAPER, named=_PAPER_OPTIONS),
        pipeline.ReviewStage(),
        pipeline.SplitStage(),
        NativeExport(),
    ),
    Path(__file__).with_name("project.yaml"),
)
