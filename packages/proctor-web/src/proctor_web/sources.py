"""The items of a study, from a file, a construction project, or answers of stored runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from proctor.core import (
    Answer,
    Dimension,
    InputError,
    Item,
    Media,
    Status,
    VideoClip,
    content_hash,
    one_of,
    read_jsonl,
    unique_keys,
    validated,
)
from proctor.core.formats import option_letters
from proctor.media import MediaLibrary
from proctor.runs import BASELINES, Run, Store, chosen_runs
from proctor_build.pipeline import (
    DraftQuestion,
    ProcedureEvent,
    Project,
    Record,
    RecordToReview,
    ReviewStage,
    ToReview,
    kind_of,
    question_version,
    records_of,
    stages_of,
)
from proctor_web.forms import (
    Form,
    FormModel,
    PairwiseBody,
    QuestionBody,
    QuestionEvent,
    QuestionText,
    RatedDimension,
    RatingBody,
    form_named,
)
from proctor_web.settings import StudySettings


@dataclass(frozen=True)
class NewItem:
    """An item from its source: its key within the study, the group that is resampled together, media, the body for the
    study's form, and the known reading of a gold item. With `read_by` one more person is to read it than these."""

    key: str
    group: str
    media: tuple[Media, ...]
    body: dict[str, JsonValue]
    gold: dict[str, JsonValue] | None = None
    read_by: int | None = None


@dataclass(frozen=True)
class AnswerOrigin:
    """The runs whose answers an item shows, in that order."""

    item: str
    runs: tuple[Run, ...]


class _Line(FormModel):
    id: str = Field(min_length=1, max_length=200)
    group: str = Field(default="", max_length=400)
    media: tuple[Media, ...] = Field(default=(), max_length=100)
    body: dict[str, JsonValue]
    gold: dict[str, JsonValue] | None = None


def items_of_file(file: Path, form: Form[Any, Any], library: MediaLibrary, *, gold: bool = False) -> list[NewItem]:
    """The items of a JSON Lines file; each item of a `gold` file has a complete reading. Raises `InputError` with the
    line for invalid fields, duplicate ids and missing media."""
    found: dict[str, NewItem] = {}
    for location, value in read_jsonl(file, "items of a study", pairs=unique_keys):
        line = validated(_Line, _with_kinds(value), file, location)
        if line.id in found:
            raise InputError(file, location, found=f"the id {line.id!r} again", expected="each id once")
        body = form.read_body(line.body, file, f"{location}, body")
        _check_media(form, body, line.media, library, file, location)
        _check_gold(form, body, line.gold, file, location, gold=gold)
        dumped = body.model_dump(mode="json", exclude_defaults=True)
        found[line.id] = NewItem(line.id, line.group or line.id, line.media, dumped, line.gold)
    return list(found.values())


def _check_media(
    form: Form[Any, Any], body: Any, media: Sequence[Media], library: MediaLibrary, file: Path, location: str
) -> None:
    for number, medium in enumerate(media, start=1):
        try:
            library.locate(medium.source)
        except InputError as error:
            raise InputError(file, f"{location}, media {number}", found=str(error)) from error
    needed = form.media_needed(body)
    if needed > len(media):
        raise InputError(file, f"{location}, media", found=str(len(media)), expected=f"{needed}, as the body says")


def _with_kinds(value: object) -> object:
    """The line, with `video` as the default kind of media."""
    if isinstance(value, dict) and isinstance(value.get("media"), list):
        media = [{"kind": "video", **one} if isinstance(one, dict) else one for one in value["media"]]
        return {**value, "media": media}
    return value


def _check_gold(
    form: Form[Any, Any], body: Any, known: dict[str, JsonValue] | None, file: Path, location: str, *, gold: bool
) -> None:
    if not gold and known is not None:
        raise InputError(file, f"{location}, field 'gold'", found="a known reading", expected="none (see plan: gold)")
    if gold:
        if known is None:
            raise InputError(file, f"{location}, field 'gold'", found="nothing", expected="the known reading")
        try:
            lacking = form.missing(body, form.read(body, known))
        except InputError as error:
            raise InputError(file, f"{location}, field 'gold'", found=str(error)) from error
        if lacking:
            raise InputError(file, f"{location}, field 'gold'", found=f"no {lacking[0]}", expected="a complete reading")


# -- a construction project


def items_of_project(folder: Path, media: Path, form: str = "question", stage: str = "") -> list[NewItem]:
    """What people read of a construction project: of one whose kind says so, its records for another form, which a
    `stage` waits for; else its questions before its stage `review`, or after its last stage with questions, with their
    events and words, the flags of screening, and former versions. `media` is the review's media folder, which must hold
    the project's videos.

    Raises `InputError` where it does not, for another form or stage, and for a project with nothing to read yet.
    """
    project = Project(folder)
    records = _to_review(project, form, stage).records(project)
    sources = {source_video.id: source_video for source_video in project.settings.sources}
    groups = project.settings.groups
    items = []
    for record in records:
        source = sources.get(record.source)
        if source is None:  # removed from project.yaml
            continue
        name = os.path.relpath(folder / source.video, media)
        if name.startswith(".."):
            expected = f"the project's videos below {media}"
            raise InputError(folder, f"source {source.id!r}", found=f"a video at {source.video!r}", expected=expected)
        clip = VideoClip(source=Path(name).as_posix(), start=record.start, end=record.end, region=source.region)
        body = form_named(form).read_body(dict(record.body), folder, record.key)
        dumped = body.model_dump(mode="json", exclude_defaults=True)
        items.append(NewItem(record.key, groups[record.source], (clip,), dumped, read_by=record.read_by))
    return items


def _to_review(project: Project, form: str, stage: str) -> ToReview:
    """What of the project a study reads. Raises `InputError` for another form, and where its stage is not clear."""
    kind = kind_of(project)
    every = kind.to_review or (ToReview("question", _questions, ReviewStage.name),)
    fitting = [one for one in every if one.form == form]
    if not fitting:
        forms = " or ".join(dict.fromkeys(one.form for one in every))
        expected = f"form: {forms}, for a project of kind {kind.name}"
        raise InputError(project.folder, "form", found=repr(form), expected=expected)
    found = [one for one in fitting if stage in ("", one.stage)]
    if len(found) != 1:
        expected = one_of([one.stage for one in fitting], stage)
        raise InputError(project.folder, "stage", found=repr(stage)[:80] if stage else "no stage", expected=expected)
    return found[0]


def _questions(project: Project) -> list[RecordToReview]:
    questions, events = _records(project)
    if not questions:
        raise InputError(project.folder, found="no questions yet", expected="a project whose stage questions was run")
    by_id = {event.id: event for event in events}
    regions = {source_video.id: source_video.region for source_video in project.settings.sources}
    found = []
    for question in questions:
        body = QuestionBody(
            **_text(question).model_dump(),
            type=question.type,
            origin=question_version(question, regions.get(question.source)),
            flags=question.flags[:50],
            former=tuple(_text(old) for old in getattr(question, "former", ()))[-50:],
            events=tuple(_event(by_id[name]) for name in question.made_from if name in by_id),
        )
        fields = body.model_dump(mode="json", exclude_defaults=True)
        found.append(RecordToReview(question.id, question.source, question.start, question.end, fields))
    return found


def _records(project: Project) -> tuple[list[DraftQuestion], list[ProcedureEvent]]:
    """The newest questions before a review, and all events before it."""
    questions: list[DraftQuestion] = []
    events: list[ProcedureEvent] = []
    for stage in stages_of(project):
        if isinstance(stage, ReviewStage):
            break
        made: Sequence[Record] = records_of(project, stage)
        drafts = [record for record in made if isinstance(record, DraftQuestion)]
        questions = drafts or questions
        events += [record for record in made if isinstance(record, ProcedureEvent)]
    return questions, events


def _text(draft_question: DraftQuestion) -> QuestionText:
    return QuestionText(
        stem=draft_question.text,
        options=draft_question.options,
        key=draft_question.key,
        answer=draft_question.answer,
        explanation=draft_question.groundtruth,
    )


def _event(event: ProcedureEvent) -> QuestionEvent:
    text = f"{event.action} ({event.intent})" if event.intent else event.action
    return QuestionEvent(start=event.start, end=event.end, text=text, words=event.quote)


# -- answers of stored runs


def items_of_runs(
    store: Store, study: StudySettings, library: MediaLibrary | None = None
) -> list[tuple[NewItem, AnswerOrigin]]:
    """One item for each answer (form rating) or pair of answers to one question (pairwise) of the study's systems, with
    its origin. The item does not disclose the systems: its key is a hash, and the order of two answers is random by
    seed. Missing answers, pairs of identical answers, and media outside the review's folder (`library`) are left out.

    Raises `InputError` for an unknown system or condition, and where there is nothing to rate.
    """
    runs = chosen_runs(store, study.benchmark, study.systems, [study.condition] if study.condition else [])
    runs = [run for run in runs if study.systems or run.system not in BASELINES]
    conditions = sorted({run.condition for run in runs})
    if len(conditions) > 1 and not study.condition:
        found = f"runs under {', '.join(conditions)}"
        raise InputError(store.shown, f"study {study.name}", found=found, expected="one condition")
    answers = {run.id: _texts(store.answers(run)) for run in runs}
    items = _in_groups(store, study)
    if study.form == "pairwise":
        found_items = [new for item in items for new in _pairs(item, runs, answers, study)]
    else:
        found_items = [new for item in items for new in _single(item, runs, answers, study, store)]
    if not found_items:
        expected = "answers to rate" if study.form == "rating" else "answers of two systems to the same questions"
        raise InputError(store.shown, f"study {study.name}", found="none", expected=expected)
    found_items.sort(key=lambda item: content_hash([study.plan.seed, item[0].key]))
    known = {item.id: item for item in items}
    return [(_with_media(new, known[origin.item], library), origin) for new, origin in found_items[: study.most]]


def _in_groups(store: Store, study: StudySettings) -> list[Item]:
    """The items of the study's groups, or all. Raises `InputError` for an unknown group."""
    items = store.items(study.benchmark)
    if unknown := sorted(set(study.groups) - {item.group for item in items}):
        expected = f"a group of {study.benchmark}"
        raise InputError(store.shown, f"study {study.name}, groups", found=repr(unknown[0])[:80], expected=expected)
    return [item for item in items if not study.groups or item.group in study.groups]


def _texts(answers: Mapping[str, Answer]) -> dict[str, str]:
    return {
        name: one.text.strip() for name, one in answers.items() if one.status is Status.ANSWERED and one.text.strip()
    }


def _single(
    item: Item, runs: Sequence[Run], answers: Mapping[int, Mapping[str, str]], study: StudySettings, store: Store
) -> Iterator[tuple[NewItem, AnswerOrigin]]:
    dimensions = _dimensions(item, study, store)
    for run in runs:
        text = answers[run.id].get(item.id)
        if text is None:
            continue
        body = RatingBody(
            question=_question(item), answer=text[:10_000], reference=_reference(item), dimensions=dimensions
        )
        key = content_hash([study.benchmark, item.id, run.system, run.condition])[:24]
        yield _new(key, item, body), AnswerOrigin(item.id, (run,))


def _pairs(
    item: Item, runs: Sequence[Run], answers: Mapping[int, Mapping[str, str]], study: StudySettings
) -> Iterator[tuple[NewItem, AnswerOrigin]]:
    some = [run for run in runs if item.id in answers[run.id]]
    for pair in combinations(sorted(some, key=lambda run: (run.system, run.condition)), 2):
        texts = [answers[run.id][item.id] for run in pair]
        if texts[0] == texts[1]:
            continue
        names: list[JsonValue] = [name for run in pair for name in (run.system, run.condition)]
        key = content_hash([study.benchmark, item.id, *names])[:24]
        turned = int(content_hash([study.plan.seed, "turned", key]), 16) % 2
        shown = (pair[1], pair[0]) if turned else pair
        first, second = (answers[run.id][item.id][:10_000] for run in shown)
        body = PairwiseBody(question=_question(item), answers=(first, second), reference=_reference(item))
        yield _new(key, item, body), AnswerOrigin(item.id, tuple(shown))


def _new(key: str, item: Item, body: FormModel) -> NewItem:
    return NewItem(key, item.group, (), body.model_dump(mode="json", exclude_defaults=True))


def _with_media(new: NewItem, item: Item, library: MediaLibrary | None) -> NewItem:
    return new if library is None or library.missing([item]) else replace(new, media=item.media)


def _question(item: Item) -> str:
    letters = option_letters(len(item.options))
    options = [f"{letter}. {text}" for letter, text in zip(letters, item.options, strict=True)]
    return "\n".join([item.question, *options])[:10_000]


def _reference(item: Item) -> str:
    if item.reference is None or not item.has_answer:
        return ""
    return item.answer.write(item.reference.answer)[:10_000]


def _dimensions(item: Item, study: StudySettings, store: Store) -> tuple[RatedDimension, ...]:
    if study.dimensions:
        return study.dimensions
    scheme = store.card(study.benchmark).rating
    dimensions: Iterable[Dimension] = scheme.of(str(item.tags.get("language", ""))) if scheme is not None else ()
    found = tuple(
        RatedDimension(name=dimension.name, levels=dimension.levels, description=dimension.description)
        for dimension in dimensions
    )
    if not found:
        expected = "dimensions: [{name: correctness, levels: [0, 1, 2]}]"
        raise InputError(f"study {study.name}", found="nothing to rate on", expected=expected)
    return found
