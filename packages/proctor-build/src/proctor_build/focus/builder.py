"""From annotated videos to a FOCUS benchmark: in one go (`proctor build focus`), or as a project whose stages are those of the
challenge's annotation (`proctor build new --kind focus`)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from proctor import __version__
from proctor.core import (
    InputError,
    clock_text,
    content_hash,
    count_of,
    generator,
    percent,
    read_bytes,
    whole_folder,
    write_whole,
)
from proctor.core.formats import ChoiceFormat, PatternFormat, PercentageFormat, TimestampsFormat
from proctor.tasks.focus import NativeReference, NativeRequest, lettered, write_native
from proctor.tracks import Annotation, CandidateQuestion, Timeline, deal_options, evidence_of, official_name, traces_of
from proctor_build import Completion, complete
from proctor_build.annotators import (
    STAGES,
    TO_REVIEW,
    AnnotatedRecord,
    DifferenceRecord,
    MeasuredTolerances,
    annotators_tolerances,
    pair_files,
)
from proctor_build.focus.plan import ASKED, SEEN_IN_TRAINING, Chosen, FocusPlan, choose_questions
from proctor_build.pipeline import (
    DATASHEET,
    ExportedBenchmark,
    ExportedItem,
    FilesStage,
    FromSource,
    Made,
    ProjectKind,
    Stage,
    StageSettings,
    WaitingError,
    Work,
    WrittenExport,
    about_sources,
    lend_video,
    stage_settings,
)
from proctor_build.sources import SourcesStage

BUILDER_VERSION = "2"
"""Changes whenever the same annotations, plan and seed give other questions."""

_NATIVE = {
    "choice": "multiple_choice",
    "count": "number",
    "binary": "binary",
    "percentage": "percentage",
    "classes": "fo_class",
    "timestamps": "time",
    "pattern": "matching",
}


class BuiltReference(NativeReference):
    """A reference with further labels, which the toolkit ignores: the rule of the question, and what is unseen in training
    (`FocusPlan.unseen`)."""

    rule: str
    unseen: str


@dataclass(frozen=True)
class FocusBuilt:
    """Questions with their keys in the same order, and for each format the number of questions and the share of the most
    common answer; `dropped` questions were left out for balance."""

    requests: tuple[NativeRequest, ...]
    references: tuple[BuiltReference, ...]
    formats: dict[str, tuple[int, float]]
    dropped: int


def ask_focus(
    annotations: Sequence[Annotation],
    plan: FocusPlan | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> FocusBuilt:
    """Questions on all videos from their annotations; see `build_focus`."""
    chosen_plan = plan or FocusPlan()
    named = [_official(annotation) for annotation in annotations]
    chosen = choose_questions(named, chosen_plan, progress=progress)
    return _files({annotation.video.id: annotation for annotation in named}, chosen, chosen_plan)


def build_focus(
    completions: Sequence[Completion],
    out: Path,
    plan: FocusPlan | None = None,
    *,
    sources: Sequence[Path] = (),
    progress: Callable[[int, int], None] | None = None,
) -> FocusBuilt:
    """Writes a FOCUS benchmark of completed annotations into the new folder `out`.

    `requests.json` and `references.json` are the official toolkit's. A question is asked at the end of what is shown
    (the video from its start, a segment, or a frame: the plan's track), and does not depend on what follows.
    `build.json` records seed, versions, sources (SHA-256), findings, filled gaps, and the balance of answers. The same
    annotations, plan and seed give the same files.

    Formats take turns. Answers are balanced within a format, a rule, and the cues in the text; the keys of choices are
    spread evenly over the letters. Where one answer makes up more than half (yes/no) or 40 % (others) of ten or more
    questions of a format, questions with it are dropped. Questions whose text contains the answer are left out, and so
    are yes-or-no questions with the same answer in three or more videos.

    Raises `InputError` where `out` is not empty, or no question can be asked; then nothing is written. The folder
    appears with all its files or not at all.
    """
    chosen = plan or FocusPlan()
    with whole_folder(out) as half:
        built = ask_focus([completion.annotation for completion in completions], chosen, progress=progress)
        if not built.requests:
            found, expected = "tracks on which nothing can be asked", "more boxes and moments"
            raise InputError(None, found=found, expected=expected)
        write_native(half / "requests.json", built.requests)
        write_native(half / "references.json", built.references)
        record = json.dumps(_record(completions, built, chosen, sources), ensure_ascii=False, indent=1)
        (half / "build.json").write_text(record + "\n", encoding="utf-8")
    return built


def _official(annotation: Annotation) -> Annotation:
    """The annotation with FOCUS's names of classes."""

    def renamed(name: str) -> dict[str, str]:
        return {"class_name": official_name(name) or name}

    return annotation.model_copy(
        update={
            "sightings": tuple(
                sighting.model_copy(update=renamed(sighting.class_name)) for sighting in annotation.sightings
            ),
            "moments": tuple(moment.model_copy(update=renamed(moment.class_name)) for moment in annotation.moments),
        }
    )


def _files(annotations: dict[str, Annotation], chosen: Chosen, plan: FocusPlan) -> FocusBuilt:
    flat = [
        (annotations[video], f"{video}-q{number:03d}", candidate)
        for video, candidates in chosen.candidates.items()
        for number, candidate in enumerate(candidates, start=1)
    ]
    choices = [candidate for _, _, candidate in flat if isinstance(candidate.format, ChoiceFormat)]
    rng = generator(plan.seed, "build focus", "options")
    decks = iter(deal_options([candidate.options for candidate in choices], [0] * len(choices), rng))
    lines = {video: Timeline(annotation) for video, annotation in annotations.items()}
    traces = {video: traces_of(line) for video, line in lines.items()}
    requests, references = [], []
    for annotation, name, candidate in flat:
        options, letter = next(decks) if isinstance(candidate.format, ChoiceFormat) else ([], "")
        requests.append(_request(annotation, name, candidate, options))
        key = _reference(annotation, name, candidate, (options, letter), plan)
        evidence = evidence_of(candidate, lines[annotation.video.id], traces[annotation.video.id])
        references.append(key if evidence is None else key.model_copy(update={"evidence": evidence}))
    return FocusBuilt(tuple(requests), tuple(references), formats_of(references), chosen.dropped)


def formats_of(references: Sequence[NativeReference]) -> dict[str, tuple[int, float]]:
    """For each format the number of questions and the share of the most common answer."""
    answers: dict[str, Counter[str]] = {}
    for reference in references:
        answers.setdefault(reference.format, Counter())[reference.answer] += 1
    return {form: (known.total(), max(known.values()) / known.total()) for form, known in sorted(answers.items())}


def _request(annotation: Annotation, name: str, candidate: CandidateQuestion, options: Sequence[str]) -> NativeRequest:
    return NativeRequest(
        qID=name,
        videoID=annotation.video.file,
        start_time=candidate.start,
        end_time=annotation.video.seconds if candidate.end is None else candidate.end,
        procedure_type=annotation.video.procedure or "unknown",
        question=f"{candidate.question} {lettered(options)}" if options else candidate.question,
    )


def _reference(
    annotation: Annotation, name: str, candidate: CandidateQuestion, dealt: tuple[Sequence[str], str], plan: FocusPlan
) -> BuiltReference:
    options, letter = dealt
    asked = ASKED[candidate.rule]
    kwargs: dict[str, JsonValue] = {}
    if isinstance(candidate.format, TimestampsFormat):
        kwargs["threshold_seconds"] = candidate.format.tolerance
    elif isinstance(candidate.format, PercentageFormat):
        kwargs["threshold_pp"] = candidate.format.tolerance
    elif isinstance(candidate.format, PatternFormat):
        kwargs["pattern"] = candidate.format.pattern
    unseen = plan.unseen(annotation.video.procedure, candidate.rule)
    reference = BuiltReference(
        qID=name,
        primary=asked.primary,
        format=_NATIVE[candidate.format.kind],
        format_kwargs=kwargs,
        answer=letter or _text(candidate),
        secondaries=asked.secondaries,
        ood=unseen != "nothing",
        clinical=asked.clinical,
        rule=candidate.rule,
        unseen=unseen,
    )
    return reference.model_copy(update={"options": tuple(options)}) if options else reference


def _text(candidate: CandidateQuestion) -> str:
    """The answer in the toolkit's notation."""
    answer = candidate.answer
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if isinstance(answer, list):
        if isinstance(candidate.format, TimestampsFormat):
            return ", ".join(clock_text(float(str(time))) for time in answer)
        return ", ".join(str(name) for name in answer) or "none"
    return f"{answer:g}" if isinstance(answer, float) else str(answer)


def _record(
    completions: Sequence[Completion], built: FocusBuilt, plan: FocusPlan, sources: Sequence[Path]
) -> dict[str, JsonValue]:
    """The content of `build.json`."""
    counted = Counter(request.videoID for request in built.requests)
    record: dict[str, object] = {
        "kind": "focus questions from tracks",
        "builder_version": BUILDER_VERSION,
        "proctor": __version__,
        "plan": asdict(plan),
        "sources": [
            {"file": source.name, "sha256": hashlib.sha256(read_bytes(source)).hexdigest()} for source in sources
        ],
        "videos": [
            {
                "id": completion.annotation.video.id,
                "file": completion.annotation.video.file,
                "procedure": completion.annotation.video.procedure,
                "annotation": content_hash(completion.annotation),
                "questions": counted[completion.annotation.video.file],
            }
            for completion in completions
        ],
        "formats": {
            form: {"questions": number, "commonest_answer": round(share, 4)}
            for form, (number, share) in built.formats.items()
        },
        "capabilities": dict(sorted(Counter(reference.primary for reference in built.references).items())),
        "dropped_for_balance": built.dropped,
        "findings": [asdict(finding) for completion in completions for finding in completion.findings],
        "filled": [asdict(filled) for completion in completions for filled in completion.filled],
    }
    plain: dict[str, JsonValue] = json.loads(json.dumps(record))
    return plain


class FocusSettings(StageSettings):
    """The options of `proctor build focus`; `fill` is the longest gap of a track to fill, in seconds. With `findings`
    questions are asked even if the tracks have open findings. Tolerances are those that the two annotators' differences
    give ("annotators"; with too few, as published) or "published"."""

    per_video: int = Field(default=40, ge=1, le=1000)
    times: int = Field(default=4, ge=0, le=100)
    fill: int = Field(default=2, ge=0, le=60)
    track: Literal["frame", "segment", "procedure"] = "procedure"
    segment_s: int = Field(default=60, ge=5, le=300)
    even_capabilities: bool = True
    in_distribution: tuple[str, ...] = SEEN_IN_TRAINING
    unseen_questions: tuple[str, ...] = ()
    findings: bool = False
    tolerances: Literal["annotators", "published"] = "annotators"


class FocusQuestion(FromSource):
    """A question and its key in the challenge's format."""

    request: NativeRequest
    reference: BuiltReference


class FocusQuestions(Stage[FocusQuestion]):
    """Questions that follow from the tracks by rules, without a model."""

    name: ClassVar[str] = "questions"
    summary: ClassVar[str] = "Questions that the tracks answer"
    after: ClassVar[tuple[str, ...]] = ("adjudication",)
    whole: ClassVar[bool] = True
    makes: ClassVar[str] = "questions"
    record = FocusQuestion
    settings = FocusSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return pair_files(work.project) if work.settings(FocusSettings).tolerances == "annotators" else ()

    async def make(self, work: Work) -> Made[FocusQuestion]:
        settings = work.settings(FocusSettings)
        completions = [complete(_published(work, track), settings.fill) for track in _tracks(work)]
        found = [finding for completion in completions for finding in completion.open]
        if found and not settings.findings:
            where = ", ".join(filter(None, (found[0].video, found[0].instance)))
            what = f"{count_of(len(found), 'finding')} in the tracks, such as {where}: {found[0].detail}"
            raise WaitingError(f"{what}; correct the tracks, or ask anyway (questions: {{findings: true}})")
        measured = annotators_tolerances(work.project) if settings.tolerances == "annotators" else None
        plan = settings.model_dump(exclude={"fill", "findings", "tolerances"}) | {"seed": work.project.settings.seed}
        if measured is not None:
            plan |= {"time_tolerance": measured.time_s, "share_tolerance": measured.share_pp}
        built = ask_focus([completion.annotation for completion in completions], FocusPlan(**plan))
        if not built.requests:
            found_, expected = "tracks on which nothing can be asked", "more boxes and moments"
            raise InputError(work.project.folder, "questions", found=found_, expected=expected)
        source = {completion.annotation.video.file: completion.annotation.video.id for completion in completions}
        made = [
            FocusQuestion(id=request.qID, made_from=(source[request.videoID],), source=source[request.videoID],
                          request=request, reference=reference)
            for request, reference in zip(built.requests, built.references, strict=True)
        ]  # fmt: skip
        notes = [f"{count_of(built.dropped, 'question')} dropped so that no answer is too common"]
        notes = [*(notes if built.dropped else []), *_filled(completions), tolerance_note(measured)]
        return Made(made, notes=notes)


def tolerance_note(measured: MeasuredTolerances | None) -> str:
    """Where the tolerances of questions come from, as a sentence."""
    times, shares = (None, None) if measured is None else (measured.time_s, measured.share_pp)
    of_times = "times as published" if times is None else f"times {times:g} s, from the annotators' differences"
    of_shares = (
        "shares as published" if shares is None else f"shares {shares:g} points, from the annotators' differences"
    )
    return f"tolerances: {of_times}; {of_shares}"


def _tracks(work: Work) -> Sequence[AnnotatedRecord]:
    return work.records("adjudication", AnnotatedRecord)


def _published(work: Work, record: AnnotatedRecord) -> Annotation:
    """The tracks of a video under its source's name, with its kind of procedure."""
    source = next(each for each in work.sources if each.id == record.id)
    about = {"file": f"{source.id}{Path(source.video).suffix}"}
    about |= {"procedure": source.procedure} if source.procedure else {}
    return record.annotation.model_copy(update={"video": record.annotation.video.model_copy(update=about)})


def _filled(completions: Sequence[Completion]) -> list[str]:
    filled = sum(len(completion.filled) for completion in completions)
    return [f"{count_of(filled, 'gap')} filled"] if filled else []


class FocusExport(FilesStage):
    """The challenge's requests and references, the videos beside them, and a datasheet."""

    after: ClassVar[tuple[str, ...]] = (*(stage.name for stage in STAGES), FocusQuestions.name)
    reader = "focus"

    def fill(self, work: Work, folder: Path) -> WrittenExport:
        made = work.records("questions", FocusQuestion)
        write_native(folder / "requests.json", [focus_question.request for focus_question in made])
        write_native(folder / "references.json", [focus_question.reference for focus_question in made])
        for source in work.sources:
            lend_video(
                work.project.path(source, "video"), folder / "videos" / f"{source.id}{Path(source.video).suffix}"
            )
        write_whole(folder / DATASHEET, _datasheet(work, made))
        track = stage_settings(work.project, FocusQuestions.name, FocusSettings).track
        exported = ExportedBenchmark([_expected(one) for one in made], work.sources, track=track)
        return WrittenExport(count_of(len(made), "question"), (exported,))


def _expected(focus_question: FocusQuestion) -> ExportedItem:
    """A question as the reader must find it."""
    request, reference = focus_question.request, focus_question.reference
    return ExportedItem(
        id=request.qID,
        key=reference.answer,
        group=request.videoID,
        options=tuple(reference.options or ()),
        tags={"procedure_type": request.procedure_type, "rule": reference.rule, "unseen": reference.unseen},
    )


def _datasheet(work: Work, made: Sequence[FocusQuestion]) -> str:
    """The datasheet: sources, the share of the most common answer of each format, and the annotators."""
    settings = stage_settings(work.project, "questions", FocusSettings)
    what = f"{count_of(len(made), 'question')} (track {settings.track})"
    lines = about_sources(work, what, "From votes to questions", made)
    lines += ["## Answers", "", "| format | questions | commonest answer |", "|---|---|---|"]
    shares = formats_of([focus_question.reference for focus_question in made])
    lines += [f"| {form} | {number} | {percent(share)} |" for form, (number, share) in shares.items()]
    differ = len(work.records("tracks", DifferenceRecord))
    lines += ["", "## Annotated by", ""]
    lines += [f"Two annotators, who differed in {count_of(differ, 'case')}; a third person decided those.", ""]
    unread = (
        "Asked by rules that the tracks settle; no clinician's reading of the questions is recorded in this project."
    )
    return "\n".join([*lines, "## Reviewed by", "", unread]) + "\n"


KIND = ProjectKind(
    "focus",
    "Questions on foreign objects, from tracks by several annotators",
    (SourcesStage(), *STAGES, FocusQuestions(), FocusExport()),
    Path(__file__).with_name("project.yaml"),
    TO_REVIEW,
)
