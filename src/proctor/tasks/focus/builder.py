"""From annotated videos to the files of a FOCUS benchmark."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import JsonValue

from proctor import __version__
from proctor.construction import Annotation, CandidateQuestion, Completion, deal_options, official_name
from proctor.core import InputError, clock_text, content_hash, generator, read_bytes, whole_folder
from proctor.core.formats import ChoiceFormat, PatternFormat, PercentageFormat, TimestampsFormat
from proctor.tasks.focus.native import NativeReference, NativeRequest, lettered, write_native
from proctor.tasks.focus.plan import ASKED, Chosen, FocusPlan, choose_questions

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
    """A reference with more labels than the toolkit reads: the rule that asked, and what of the question is unseen in
    training (`FocusPlan.unseen`)."""

    rule: str
    unseen: str


@dataclass(frozen=True)
class FocusBuilt:
    """What was written: questions with their keys, pairwise, and per format how many there are and the share of
    the commonest answer among them; `dropped` were left out so that no answer is too common."""

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
    """Questions on all videos, from their annotations alone; see `build_focus`."""
    chosen_plan = plan or FocusPlan()
    named = [_official(one) for one in annotations]
    chosen = choose_questions(named, chosen_plan, progress=progress)
    return _files({one.video.id: one for one in named}, chosen, chosen_plan)


def build_focus(
    completions: Sequence[Completion],
    out: Path,
    plan: FocusPlan | None = None,
    *,
    sources: Sequence[Path] = (),
    progress: Callable[[int, int], None] | None = None,
) -> FocusBuilt:
    """Writes a FOCUS benchmark of completed annotations into the new folder `out`.

    `requests.json` and `references.json` are the official toolkit's; a question is asked at the end of what is shown
    (all from the start of the video, a segment, or a frame: the plan's track), and nothing after that counts.
    `build.json` records seed, versions, sources (SHA-256), findings, what was filled, and how even the answers are. The
    same annotations, plan and seed give the same files.

    Formats take turns; answers are balanced within a format, a rule, and what the text tells; keys of choices
    stand at each letter equally often. Where of ten or more questions of a format one answer makes up more than
    half (yes/no) or 40 % (others), questions with it are dropped. A question whose text names its answer, and a
    yes-or-no question that three or more videos all answer alike, is not asked.

    Raises `InputError` where `out` holds something, or nothing can be asked; then nothing is written. The folder
    appears with all its files or not at all.
    """
    chosen = plan or FocusPlan()
    with whole_folder(out) as half:
        built = ask_focus([one.annotation for one in completions], chosen, progress=progress)
        if not built.requests:
            found, expected = "tracks on which nothing can be asked", "more boxes and moments"
            raise InputError(None, found=found, expected=expected)
        write_native(half / "requests.json", built.requests)
        write_native(half / "references.json", built.references)
        record = json.dumps(_record(completions, built, chosen, sources), ensure_ascii=False, indent=1)
        (half / "build.json").write_text(record + "\n", encoding="utf-8")
    return built


def _official(annotation: Annotation) -> Annotation:
    """With its classes as FOCUS writes them."""

    def renamed(name: str) -> dict[str, str]:
        return {"class_name": official_name(name) or name}

    return annotation.model_copy(
        update={
            "sightings": tuple(one.model_copy(update=renamed(one.class_name)) for one in annotation.sightings),
            "moments": tuple(one.model_copy(update=renamed(one.class_name)) for one in annotation.moments),
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
    requests, references = [], []
    for annotation, name, candidate in flat:
        options, letter = next(decks) if isinstance(candidate.format, ChoiceFormat) else ([], "")
        requests.append(_request(annotation, name, candidate, options))
        references.append(_reference(annotation, name, candidate, (options, letter), plan))
    return FocusBuilt(tuple(requests), tuple(references), formats_of(references), chosen.dropped)


def formats_of(references: Sequence[NativeReference]) -> dict[str, tuple[int, float]]:
    """Of each format how many questions there are, and the share of the commonest answer among them."""
    answers: dict[str, Counter[str]] = {}
    for one in references:
        answers.setdefault(one.format, Counter())[one.answer] += 1
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
    """The answer as the toolkit writes it."""
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
    """What `build.json` says."""
    counted = Counter(request.videoID for request in built.requests)
    record: dict[str, object] = {
        "kind": "focus questions from tracks",
        "builder_version": BUILDER_VERSION,
        "proctor": __version__,
        "plan": asdict(plan),
        "sources": [{"file": one.name, "sha256": hashlib.sha256(read_bytes(one)).hexdigest()} for one in sources],
        "videos": [
            {
                "id": one.annotation.video.id,
                "file": one.annotation.video.file,
                "procedure": one.annotation.video.procedure,
                "annotation": content_hash(one.annotation),
                "questions": counted[one.annotation.video.file],
            }
            for one in completions
        ],
        "formats": {
            form: {"questions": number, "commonest_answer": round(share, 4)}
            for form, (number, share) in built.formats.items()
        },
        "capabilities": dict(sorted(Counter(one.primary for one in built.references).items())),
        "dropped_for_balance": built.dropped,
        "findings": [asdict(finding) for one in completions for finding in one.findings],
        "filled": [asdict(filled) for one in completions for filled in one.filled],
    }
    plain: dict[str, JsonValue] = json.loads(json.dumps(record))
    return plain
