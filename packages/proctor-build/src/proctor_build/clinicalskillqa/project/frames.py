"""The stage `frames`: key frames of each source, with exact times and shuffled labels."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from proctor.core import Frame, FrozenModel, InputError, count_of, one_of
from proctor.media import MediaLibrary, Picture
from proctor.tasks.clinicalskillqa import (
    SCENARIOS,
    DrawnFrames,
    InstancePlan,
    Scenario,
    dealt_labels,
    draw_frames,
    scenario_named,
)
from proctor_build.pipeline import Made, Project, Refused, SourceVideo, Stage, StageSettings, Timed, Work


class FramesSettings(StageSettings):
    """Up to `per_video` stretches of `seconds` from each source, and one instance of each stretch for every number in
    `frames`; `apart` is the smallest difference of two frames (share of the bits of their perceptual hashes)."""

    frames: tuple[Annotated[int, Field(ge=2, le=26)], ...] = Field(default=(4, 6), min_length=1)
    per_video: int = Field(default=4, ge=1, le=10_000)
    seconds: float = Field(default=4.0, ge=0.2, le=36_000)
    apart: float = Field(default=0.02, ge=0, le=0.5)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len(set(self.frames)) < len(self.frames):
            raise ValueError("numbers of frames, each once, are expected")
        return self


class LabelledFrame(FrozenModel):
    """A frame: its label, its time, and the SHA-256 of its JPEG."""

    label: str
    time: float = Field(ge=0)
    sha256: str


class OrderedFrames(Timed):
    """The key frames of an instance, by label, and the labels in the order of time."""

    frames: tuple[LabelledFrame, ...]
    order: tuple[str, ...]
    scenario: Scenario | None = None


class FramesStage(Stage[OrderedFrames]):
    """Visibly different frames within each source's trim and region, drawn as in `proctor build clinicalskillqa`."""

    name = "frames"
    summary = "Key frames, shuffled"
    record = OrderedFrames
    settings = FramesSettings

    def reads(self, work: Work) -> Sequence[Path]:
        return [work.project.path(work.source, "video")]

    async def make(self, work: Work) -> Made[OrderedFrames]:
        scenario = scenario_of(work.project, work.source)
        drawn = await asyncio.to_thread(_drawn, work)
        made, refused = [], []
        if not drawn:
            reason = f"no stretch of {work.settings(FramesSettings).seconds:g} s in what is used of it"
            refused.append(Refused.of(work.unit, "too short", reason))
        for number, one in enumerate(drawn):
            name = _name(work, number)
            if one.times:
                made.append(_ordered(work, name, one, scenario))
            else:
                found = f"{one.stretch[0]:.1f} to {one.stretch[1]:.1f} s"
                reason = f"no {count_of(one.count, 'frame')} that differ visibly"
                refused.append(Refused.of(name, "too alike", reason, found))
        return Made(made, refused)


def _drawn(work: Work) -> list[DrawnFrames]:
    settings, source = work.settings(FramesSettings), work.source
    plan = InstancePlan(settings.frames, settings.per_video, settings.seconds, settings.apart)
    library, name = library_of(work.project, source)
    ends = library.probe(name).duration_s
    work.project.check_trim(source, ends)
    within = (source.start, min(ends, source.end or ends))

    def drawn(*attempt: str) -> list[DrawnFrames]:
        rng = work.generator("keyframes", *attempt)
        return draw_frames(library, name, plan, rng, within=within, region=source.region)

    found = drawn()
    for number in range(len(found)):  # an instance to be made again is drawn again, in its own share of the video
        attempt = work.attempts.get(_name(work, number), 0)
        if attempt:
            found[number] = drawn(str(attempt))[number]
    return found


def _name(work: Work, number: int) -> str:
    return f"{work.unit}-k{number + 1:03d}"


def _ordered(work: Work, name: str, drawn_frames: DrawnFrames, scenario: Scenario | None) -> OrderedFrames:
    attempt = work.attempts.get(name, 0)
    order = dealt_labels(drawn_frames.count, work.generator("labels", name, *([str(attempt)] if attempt else [])))
    shown = [
        LabelledFrame(label=label, time=time, sha256=hashlib.sha256(jpeg).hexdigest())
        for label, time, jpeg in zip(order, drawn_frames.times, drawn_frames.pictures, strict=True)
    ]
    return OrderedFrames(
        id=name,
        source=work.unit,
        start=drawn_frames.stretch[0],
        end=drawn_frames.stretch[1],
        frames=tuple(sorted(shown, key=lambda frame: frame.label)),
        order=order,
        scenario=scenario,
    )


def scenario_of(project: Project, source: SourceVideo) -> Scenario | None:
    """The scenario of a source by its category; None without a category. Raises `InputError` for an unknown one."""
    scenario = scenario_named(source.category)
    if source.category and scenario is None:
        location = f"source {source.id!r}, field 'category'"
        raise InputError(project.file, location, found=repr(source.category), expected=one_of(SCENARIOS))
    return scenario


def library_of(project: Project, source: SourceVideo) -> tuple[MediaLibrary, str]:
    """The library of a source's video (a link may lead out of the project), and the video's name in it."""
    file = project.path(source, "video").resolve()
    return MediaLibrary(file.parent), file.name


def pictures_of(project: Project, ordered_frames: OrderedFrames, labels: Sequence[str]) -> list[Frame]:
    """The frames with these labels, in this order, without their times. Blocks. Raises `InputError` where the video
    yields another picture than the recorded one."""
    source = next(source_video for source_video in project.settings.sources if source_video.id == ordered_frames.source)
    library, name = library_of(project, source)
    known = {frame.label: frame for frame in ordered_frames.frames}
    jpegs = library.jpegs([Picture(name, known[label].time, source.region) for label in labels])
    for label, jpeg in zip(labels, jpegs, strict=True):
        if hashlib.sha256(jpeg).hexdigest() != known[label].sha256:
            found = f"another picture at {known[label].time:.3f} s"
            expected = (
                "the one that was recorded, by other versions of PyAV and Pillow (or: build run DIR --redo frames)"
            )
            raise InputError(
                project.path(source, "video"), f"frame {label} of {ordered_frames.id}", found=found, expected=expected
            )
    return [Frame(jpeg=jpeg, time=None, label=f"Frame {label}") for label, jpeg in zip(labels, jpegs, strict=True)]
