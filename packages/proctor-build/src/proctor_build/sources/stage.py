"""The stage `sources`: what each video holds, and which stretches and regions should perhaps be hidden."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from proctor.core import (
    InputError,
    Region,
    content_hash,
    percent,
    read_arrays,
    read_model,
    replacing,
    write_arrays,
    write_whole,
)
from proctor.media import (
    Catalogue,
    TextOverlay,
    VideoFacts,
    cache_folder,
    find_leaks,
    find_text,
    inspect_video,
    look_at,
    sampled,
)
from proctor_build.pipeline import Made, Project, Record, SourceVideo, Stage, StageSettings, Work, stage_settings
from proctor_build.sources.outside import LOOK_SIDE, LOOK_VERSION, OutsideFinder, fit_finder, look_of
from proctor_build.sources.proposals import LabelledStretch, Proposal, outside_spans, read_labels, text_proposals

LABELS, DECISIONS = "sources/labels.csv", "sources/decisions.csv"
"""The tables that people write, inside a project."""


class SourceSettings(StageSettings):
    """`fps` frames a second are searched for text with a score of `text_score` or more, and for frames outside the
    body, with a threshold that finds the share `target` of the labelled ones. Proposals are extended by `pad_s` seconds
    at both ends. `unused` says how copies show what `start`, `end` and `region` leave out: `black`, or `keep`."""

    fps: float = Field(default=2.0, gt=0, le=30)
    text_score: float = Field(default=0.5, gt=0, le=1)
    target: float = Field(default=0.98, gt=0, lt=1)
    pad_s: float = Field(default=1.0, ge=0, le=60)
    near_duplicates: bool = True
    unused: str = Field(default="black", pattern="^(black|keep)$")

    @property
    def padding(self) -> float:
        """Seconds added at both ends: at least the time between two frames."""
        return max(self.pad_s, 1 / self.fps)


class SourceRecord(Record):
    """The file of one source: `sha256` of the original; `holds` lists what a de-identified copy leaves out (sound,
    chapters, further streams, tags); `like` are the sources with the same pictures."""

    sha256: str
    container: str
    codec: str
    duration_s: float
    width: int
    height: int
    fps: float
    variable_rate: bool
    longest_s: float
    holds: tuple[str, ...]
    like: tuple[str, ...]
    proposals: tuple[Proposal, ...]


class SourcesStage(Stage[SourceRecord]):
    """Checks all sources together: duplicates and the finder need all of them."""

    name = "sources"
    summary = "Check videos, and propose what to hide"
    whole, optional = True, True
    record = SourceRecord
    settings = SourceSettings

    def reads(self, work: Work) -> Sequence[Path]:
        """The videos, and the table of labels if there is one."""
        labels = work.project.folder / LABELS
        videos = [work.project.path(source, "video") for source in work.sources]
        return [*dict.fromkeys(videos), *([labels] if labels.is_file() else [])]

    async def make(self, work: Work) -> Made[SourceRecord]:
        """One record a source; notes say what the finder is worth."""
        return await asyncio.to_thread(self._made, work)

    def _made(self, work: Work) -> Made[SourceRecord]:
        settings = work.settings(SourceSettings)
        project, facts = work.project, {}
        for source in work.sources:
            facts[source.id] = inspect_video(project.path(source, "video"))
            project.check_trim(source, facts[source.id].duration_s)
        seen = seen_videos(project)
        finder = finder_of(project, seen)
        like = _alike(project, work.sources) if settings.near_duplicates else {}
        files = Catalogue(cache_folder())
        records = []
        for source in work.sources:
            proposals = _proposals(seen[source.id], finder, settings, facts[source.id].duration_s)
            sha256 = files.identity(project.path(source, "video"))
            records.append(_record(source, sha256, facts[source.id], like.get(source.id, ()), proposals))
        return Made(records, notes=[finder_line(finder)])


def source_settings(project: Project) -> SourceSettings:
    """The settings of the stage `sources`."""
    return stage_settings(project, SourcesStage.name, SourceSettings)


def _cache(project: Project) -> Path:
    return project.work / "sources" / "seen"


def seen_videos(project: Project) -> dict[str, SeenVideo]:
    """The features and overlays of each source's video, computed once."""
    settings, files = source_settings(project), Catalogue(cache_folder())
    paths = {source.id: project.path(source, "video") for source in project.settings.sources}
    return {
        name: seen_video(
            video, files.identity(video), _cache(project), fps=settings.fps, text_score=settings.text_score
        )
        for name, video in paths.items()
    }


def finder_of(project: Project, seen: Mapping[str, SeenVideo]) -> OutsideFinder | None:
    """The finder fitted on the project's labels (cached); None without labels. Raises `InputError` for an invalid table,
    or labels of too few videos."""
    file = project.folder / LABELS
    labels = read_labels(file, [source.id for source in project.settings.sources])
    if not labels:
        return None
    settings = source_settings(project)
    patients = {source.id: source.patient for source in project.settings.sources}
    looks, outside, groups = [], [], []
    for labelled_stretch in _apart(file, labels):
        held = seen[labelled_stretch.source]
        inside = (held.times >= labelled_stretch.start) & (held.times < labelled_stretch.end)
        looks.append(held.looks[inside])
        outside += [labelled_stretch.outside] * int(inside.sum())
        groups += [patients[labelled_stretch.source]] * int(inside.sum())
    looked, shown = np.concatenate(looks), np.array(outside)
    about: list[JsonValue] = [LOOK_VERSION, settings.target, project.settings.seed, [*groups], [*outside]]
    key = content_hash([*about, hashlib.sha256(looked.tobytes()).hexdigest()])
    kept = _cache(project) / f"finder-{key}.json"
    if kept.is_file():
        return read_model(kept, OutsideFinder, "a finder of outside pictures")
    finder = fit_finder(looked, shown, groups, target=settings.target, seed=project.settings.seed, location=file)
    write_whole(kept, finder.model_dump_json(indent=1) + "\n")
    return finder


def _apart(file: Path, labels: Sequence[LabelledStretch]) -> Sequence[LabelledStretch]:
    ordered = sorted(labels, key=lambda label: (label.source, label.start))
    for one, other in pairwise(ordered):
        if one.source == other.source and other.start < one.end:
            found = f"a stretch of {one.source} from {other.start:g} s inside one that ends at {one.end:g} s"
            raise InputError(file, found=found, expected="stretches that do not overlap")
    return ordered


def finder_line(finder: OutsideFinder | None) -> str:
    """The finder's held-out performance in a line."""
    if finder is None:
        return f"no labels: pictures outside the body are not looked for; say in {LABELS} which stretches show what"
    held = finder.held_out
    ends = [
        (held.sensitivity, held.sensitivity_low, held.sensitivity_high),
        (held.specificity, held.specificity_low, held.specificity_high),
    ]
    found, left = (
        percent(value)
        + (f" ({percent(low)} to {percent(high)})" if low is not None else " (no interval: too few videos)")
        for value, low, high in ends
    )
    return (
        f"on labelled videos held out ({held.groups} groups) the finder proposes {found} of {held.outside} outside pictures"
        f" and leaves {left} of {held.inside} inside ones"
    )


def _alike(project: Project, sources: Sequence[SourceVideo]) -> dict[str, tuple[str, ...]]:
    """By source the others whose files, at other paths, show the same."""
    by_path: dict[Path, list[str]] = {}
    for source in sources:
        by_path.setdefault(project.path(source, "video").resolve(), []).append(source.id)
    looked = [one for path in by_path for one in look_at(path)[0]]
    found: dict[str, set[str]] = {}
    for leak in find_leaks(looked, looked):
        first, second = (by_path[each.path.resolve()] for each in (leak.first, leak.second))
        for some, others in ((first, second), (second, first)):
            for name in some:
                found.setdefault(name, set()).update(others)
    return {name: tuple(sorted(others)) for name, others in found.items()}


def _proposals(seen: SeenVideo, finder: OutsideFinder | None, settings: SourceSettings, end: float) -> list[Proposal]:
    pad = settings.padding
    found = text_proposals(seen.overlays, pad_s=pad, end=end)
    if finder is not None:
        scores = finder.scores(seen.looks)
        found += outside_spans(seen.times.tolist(), scores, finder.threshold, pad_s=pad, end=end)
    return sorted(found, key=lambda proposal: (proposal.start, proposal.kind, proposal.end))


def _record(
    source: SourceVideo, sha256: str, facts: VideoFacts, like: tuple[str, ...], proposals: Sequence[Proposal]
) -> SourceRecord:
    held = facts.held
    holds = [f"{held.audio_tracks} audio"] if held.audio_tracks else []
    holds += [f"{held.chapters} chapters"] if held.chapters else []
    holds += [*(f"a stream of {kind}" for kind in held.other_streams), *(f"tag {name}" for name in held.tags)]
    kinds = {proposal.kind for proposal in proposals}
    flags = {
        "no licence": not source.licence,
        "no provenance": not source.provenance,
        "variable frame rate": facts.variable_rate,
        "sound": any(hold.endswith(" audio") for hold in holds),
        "metadata": any(not hold.endswith(" audio") for hold in holds),
        "shows the same as another": bool(like),
        "text": "text" in kinds,
        "outside": "outside" in kinds,
    }
    return SourceRecord(
        id=source.id,
        flags=tuple(name for name, raised in flags.items() if raised),
        sha256=sha256,
        container=facts.container,
        codec=facts.codec,
        duration_s=round(facts.duration_s, 6),
        width=facts.width,
        height=facts.height,
        fps=round(facts.fps, 4),
        variable_rate=facts.variable_rate,
        longest_s=round(facts.longest_s, 6),
        holds=tuple(holds),
        like=like,
        proposals=tuple(proposals),
    )


_VERSION = 1  # of how text is found


@dataclass(frozen=True)
class SeenVideo:
    """The times and features (`look_of`) of a video's frames at a steady rate, and its text overlays."""

    times: NDArray[np.float64]
    looks: NDArray[np.float64]
    overlays: tuple[TextOverlay, ...]


def seen_video(video: Path, identity: str, cache: Path, *, fps: float, text_score: float) -> SeenVideo:
    """Analyses a video; results are cached by content and settings. Raises `InputError` if the video can't be decoded
    or the folder can't be written to."""
    key = content_hash([identity, fps, text_score, LOOK_VERSION, LOOK_SIDE, _VERSION])
    file = cache / f"{key}.npz"
    known = _kept(file)
    if known is not None:
        return known
    pictures = [
        (sampled_picture.time, look_of(sampled_picture.pixels)) for sampled_picture in sampled(video, fps, LOOK_SIDE)
    ]
    overlays = tuple(find_text(video, fps=fps, least=text_score))
    seen = SeenVideo(np.array([time for time, _ in pictures]), np.stack([look for _, look in pictures]), overlays)
    rows = [
        [
            overlay.region.x,
            overlay.region.y,
            overlay.region.width,
            overlay.region.height,
            overlay.start,
            overlay.end,
            overlay.score,
        ]
        for overlay in overlays
    ]
    try:
        with replacing(file) as draft:
            write_arrays(draft, {"times": seen.times, "looks": seen.looks, "overlays": np.array(rows).reshape(-1, 7)})
    except OSError as error:
        raise InputError(cache, found=error.strerror or str(error), expected="a folder to write to") from error
    return seen


def _kept(file: Path) -> SeenVideo | None:
    """The cached result; None without a usable one."""
    try:
        found = read_arrays(file, "looks", "the looks of a video") if file.is_file() else {}
        rows = [[float(cell) for cell in row] for row in found["overlays"]]
        overlays = tuple(
            TextOverlay(Region(x=x, y=y, width=width, height=height), start, end, score)
            for x, y, width, height, start, end, score in rows
        )
        return SeenVideo(found["times"], found["looks"], overlays)
    except (InputError, KeyError, ValueError):
        return None
