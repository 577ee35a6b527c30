"""`proctor build new --kind focus`: from videos to tracks of instances, by the stages of the challenge's annotation,
and to questions on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from proctor.construction import Annotation, Completion, complete
from proctor.construction.annotators import STAGES, AnnotatedRecord, DifferenceRecord
from proctor.construction.pipeline import (
    DATASHEET,
    FilesStage,
    FromSource,
    Made,
    ProjectKind,
    Stage,
    StageSettings,
    WaitingError,
    Work,
    about_sources,
    lend_video,
    stage_settings,
)
from proctor.construction.sources import SourcesStage
from proctor.core import InputError, count_of, percent, write_whole
from proctor.tasks.focus.builder import BuiltReference, ask_focus, formats_of
from proctor.tasks.focus.native import NativeRequest, write_native
from proctor.tasks.focus.plan import SEEN_IN_TRAINING, FocusPlan


class FocusSettings(StageSettings):
    """How questions are made, as `proctor build focus` takes it; `fill` is the longest gap of a track that is filled,
    in seconds. With `findings` questions are asked although the tracks have findings that a person should decide."""

    per_video: int = Field(default=40, ge=1, le=1000)
    times: int = Field(default=4, ge=0, le=100)
    fill: int = Field(default=2, ge=0, le=60)
    track: Literal["frame", "segment", "procedure"] = "procedure"
    segment_s: int = Field(default=60, ge=5, le=300)
    even_capabilities: bool = True
    in_distribution: tuple[str, ...] = SEEN_IN_TRAINING
    unseen_questions: tuple[str, ...] = ()
    findings: bool = False


class FocusQuestion(FromSource):
    """A question and its key, as the challenge's files have them."""

    request: NativeRequest
    reference: BuiltReference


class FocusQuestions(Stage[FocusQuestion]):
    """Questions that the tracks answer, asked by rules: no model is asked."""

    name: ClassVar[str] = "questions"
    summary: ClassVar[str] = "Questions that the tracks answer"
    after: ClassVar[tuple[str, ...]] = ("adjudication",)
    whole: ClassVar[bool] = True
    makes: ClassVar[str] = "questions"
    record = FocusQuestion
    settings = FocusSettings

    async def make(self, work: Work) -> Made[FocusQuestion]:
        settings = work.settings(FocusSettings)
        completions = [complete(_published(work, one), settings.fill) for one in _tracks(work)]
        found = [finding for one in completions for finding in one.open]
        if found and not settings.findings:
            where = ", ".join(filter(None, (found[0].video, found[0].instance)))
            what = f"{count_of(len(found), 'finding')} in the tracks, such as {where}: {found[0].detail}"
            raise WaitingError(f"{what}; correct the tracks, or ask all the same (questions: {{findings: true}})")
        plan = settings.model_dump(exclude={"fill", "findings"}) | {"seed": work.project.settings.seed}
        built = ask_focus([one.annotation for one in completions], FocusPlan(**plan))
        if not built.requests:
            found_, expected = "tracks on which nothing can be asked", "more boxes and moments"
            raise InputError(work.project.folder, "questions", found=found_, expected=expected)
        source = {one.annotation.video.file: one.annotation.video.id for one in completions}
        made = [
            FocusQuestion(id=request.qID, made_from=(source[request.videoID],), source=source[request.videoID],
                          request=request, reference=reference)
            for request, reference in zip(built.requests, built.references, strict=True)
        ]  # fmt: skip
        notes = [f"{count_of(built.dropped, 'question')} dropped so that no answer is too common"]
        return Made(made, notes=[*(notes if built.dropped else []), *_filled(completions)])


def _tracks(work: Work) -> Sequence[AnnotatedRecord]:
    return work.records("adjudication", AnnotatedRecord)


def _published(work: Work, one: AnnotatedRecord) -> Annotation:
    """The tracks of a video under its source's name, with its kind of procedure."""
    source = next(each for each in work.sources if each.id == one.id)
    about = {"file": f"{source.id}{Path(source.video).suffix}"}
    about |= {"procedure": source.procedure} if source.procedure else {}
    return one.annotation.model_copy(update={"video": one.annotation.video.model_copy(update=about)})


def _filled(completions: Sequence[Completion]) -> list[str]:
    filled = sum(len(one.filled) for one in completions)
    return [f"{count_of(filled, 'gap')} filled"] if filled else []


class FocusExport(FilesStage):
    """The challenge's requests and references, the videos beside them, and a datasheet."""

    after: ClassVar[tuple[str, ...]] = (*(one.name for one in STAGES), FocusQuestions.name)

    def fill(self, work: Work, folder: Path) -> str:
        made = work.records("questions", FocusQuestion)
        write_native(folder / "requests.json", [one.request for one in made])
        write_native(folder / "references.json", [one.reference for one in made])
        for source in work.sources:
            lend_video(
                work.project.path(source, "video"), folder / "videos" / f"{source.id}{Path(source.video).suffix}"
            )
        write_whole(folder / DATASHEET, _datasheet(work, made))
        return count_of(len(made), "question")


def _datasheet(work: Work, made: Sequence[FocusQuestion]) -> str:
    """What is asked, how common the commonest answer of each format is, and how the tracks came about."""
    settings = stage_settings(work.project, "questions", FocusSettings)
    what = f"{count_of(len(made), 'question')} (track {settings.track})"
    lines = about_sources(work, what, "From votes to questions", made)
    lines += ["## Answers", "", "| format | questions | commonest answer |", "|---|---|---|"]
    shares = formats_of([one.reference for one in made])
    lines += [f"| {form} | {number} | {percent(share)} |" for form, (number, share) in shares.items()]
    differ = len(work.records("tracks", DifferenceRecord))
    lines += ["", "## Annotated by", ""]
    lines += [f"Two annotators, who differed in {count_of(differ, 'place')}; a third person decided those.", ""]
    unread = (
        "Asked by rules that the tracks settle; no clinician's reading of the questions is recorded in this project."
    )
    return "\n".join([*lines, "## Reviewed by", "", unread]) + "\n"


KIND = ProjectKind(
    "focus",
    "Questions on foreign objects, from tracks by several annotators",
    (SourcesStage(), *STAGES, FocusQuestions(), FocusExport()),
    Path(__file__).with_name("project.yaml"),
)
