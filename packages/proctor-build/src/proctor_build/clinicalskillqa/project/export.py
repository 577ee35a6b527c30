"""The stages `split` and `export` (parts that share no video; ClinicalSkillQA's own files with a datasheet), and the kind of
project `clinicalskillqa` with all its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from proctor.core import Image, Item, Reference, count_of, write_whole
from proctor.core.formats import OrderingFormat
from proctor.tasks.clinicalskillqa import dealt_names, write_instances
from proctor_build.clinicalskillqa.project.consensus import FORM, AgreedFrames, ConsensusStage, records_to_review
from proctor_build.clinicalskillqa.project.frames import FramesSettings, FramesStage, pictures_of
from proctor_build.clinicalskillqa.project.rationales import (
    CheckedSentence,
    EvidenceStage,
    RationalesStage,
    RefineStage,
)
from proctor_build.pipeline import (
    DATASHEET,
    ExportedBenchmark,
    ExportedItem,
    FilesStage,
    Made,
    ProjectKind,
    SplitSettings,
    Stage,
    ToReview,
    Work,
    WrittenExport,
    about_sources,
    dealt_parts,
    made_by,
    nothing_stays,
    reviewed_by,
    stage_settings,
    unit_file,
)
from proctor_build.sources import SourcesStage


class PartedFrames(AgreedFrames):
    """An instance with its part ("" where there is only one)."""

    part: str = ""


class InstanceSplitStage(Stage[PartedFrames]):
    """Assigns groups of sources to parts."""

    name = "split"
    summary = "Parts that share no video"
    after: ClassVar[tuple[str, ...]] = ("consensus",)
    whole = True
    states: ClassVar[tuple[str, ...]] = ("tags",)
    record = PartedFrames
    settings = SplitSettings

    async def make(self, work: Work) -> Made[PartedFrames]:
        agreed = work.records("consensus", AgreedFrames)
        part, notes = dealt_parts(
            work, [_item(agreed_frames, work.project.settings.groups) for agreed_frames in agreed]
        )
        fields = [
            (agreed_frames, {"made_from": (agreed_frames.id,), "part": part[agreed_frames.id]})
            for agreed_frames in agreed
        ]
        made = [PartedFrames.model_validate(one.model_dump() | more) for one, more in fields]
        return Made(
            [
                parted_frames.model_copy(update={"id": parted_frames.id.removesuffix("-agreed")})
                for parted_frames in made
            ],
            notes=notes,
        )


def _item(agreed_frames: AgreedFrames, groups: Mapping[str, str]) -> Item:
    labels = tuple(sorted(agreed_frames.order))
    return Item(
        id=agreed_frames.id,
        group=groups[agreed_frames.source],
        question="In which order were the frames taken?",
        media=tuple(Image(source=f"{agreed_frames.id}/{label}.jpg", label=label) for label in labels),
        answer=OrderingFormat(labels=labels),
        reference=Reference(answer=[*agreed_frames.order], rationale=agreed_frames.rationale),
    )


class InstancesExport(FilesStage):
    """`instances/ID/LABEL.jpg`, `references.jsonl` and `about.json`, in a folder for each part, and a datasheet. Ids are
    shuffled over all instances, so that they reveal nothing."""

    after: ClassVar[tuple[str, ...]] = ("frames", "rationales", "refine", "evidence", "consensus", "split")
    reader = "clinicalskillqa"

    def reads(self, work: Work) -> Sequence[Path]:
        return [*super().reads(work), unit_file(work.project, ConsensusStage.name)]

    def fill(self, work: Work, folder: Path) -> WrittenExport:
        made = work.records("split", PartedFrames)
        if not made:
            raise nothing_stays(work.project, "instance")
        benchmarks = []
        for part in sorted({parted_frames.part for parted_frames in made}):
            mine = [parted_frames for parted_frames in made if parted_frames.part == part]
            named = dealt_names(mine, work.project.settings.seed)
            written = ((_reference(work, name, one), _pictures(work, one)) for name, one in named)
            write_instances(folder / part, written, _about(work, mine))
            used = [source for source in work.sources if source.id in {one.source for one in mine}]
            items = [_expected(name, one, work.project.settings.groups) for name, one in named]
            benchmarks.append(ExportedBenchmark(items, used, part, part))
        write_whole(folder / DATASHEET, instances_sheet(work, made))
        return WrittenExport(count_of(len(made), "instance"), benchmarks)


def _expected(name: str, parted_frames: PartedFrames, groups: Mapping[str, str]) -> ExportedItem:
    """An instance as the reader must find it."""
    return ExportedItem(
        id=name,
        key=[*parted_frames.order],
        group=groups[parted_frames.source],
        rationale=parted_frames.rationale,
        tags={"scenario": parted_frames.scenario} if parted_frames.scenario else {},
    )


def _pictures(work: Work, parted_frames: PartedFrames) -> dict[str, bytes]:
    return dict(
        zip(
            parted_frames.order,
            [frame.jpeg for frame in pictures_of(work.project, parted_frames, parted_frames.order)],
            strict=True,
        )
    )


def _reference(work: Work, name: str, parted_frames: PartedFrames) -> dict[str, JsonValue]:
    source = next(each for each in work.sources if each.id == parted_frames.source)
    times = {frame.label: frame.time for frame in parted_frames.frames}
    return {
        "id": name,
        "order": [*parted_frames.order],
        "rationale": parted_frames.rationale,
        **({"scenario": parted_frames.scenario} if parted_frames.scenario else {}),
        "video": source.patient,  # what the reader groups by
        "source": parted_frames.source,
        "record": parted_frames.id,
        "start": parted_frames.start,
        "end": parted_frames.end,
        "times": [times[label] for label in parted_frames.order],
        "sentences": [{"text": sentence.text, "frames": [*sentence.frames]} for sentence in parted_frames.sentences],
    }


def _about(work: Work, mine: Sequence[PartedFrames]) -> dict[str, JsonValue]:
    used = {parted_frames.source for parted_frames in mine}
    settings = stage_settings(work.project, "frames", FramesSettings)
    return {
        "videos": len(used),
        "events": False,
        "frames": [*settings.frames],
        "seconds": settings.seconds,
        "apart": settings.apart,
    }


def instances_sheet(work: Work, made: Sequence[PartedFrames]) -> str:
    """The datasheet: sources and licence, the funnel, models and prompts, the verdicts on sentences, and the review with
    its outcome."""
    sizes = Counter(len(parted_frames.order) for parted_frames in made)
    shown = ", ".join(f"{count} of {size} frames" for size, count in sorted(sizes.items()))
    lines = about_sources(work, f"{count_of(len(made), 'instance')} ({shown})", "From frames to instances", made)
    checked = work.records("evidence", CheckedSentence)
    verdicts = Counter(checked_sentence.verdict or "no verdict" for checked_sentence in checked)
    lines += ["## Sentences on their frames", ""]
    lines += [f"- {name}: {count_of(count, 'sentence')}" for name, count in sorted(verdicts.items())]
    lines += ["", *reviewed_by(work.project), "", "### What became of the instances", ""]
    settled = made_by(work.project, ConsensusStage.name)
    lines += [f"- {note}" for note in settled.notes]
    lines += [f"- {count_of(len(settled.refused), 'instance')} left for that, or without a sentence"]
    flags = Counter(flag for parted_frames in made for flag in parted_frames.flags)
    lines += [f"- {flag}: {count_of(count, 'instance')}" for flag, count in sorted(flags.items())]
    return "\n".join(lines) + "\n"


KIND = ProjectKind(
    "clinicalskillqa",
    "Key frames in order, with rationales",
    (
        SourcesStage(),
        FramesStage(),
        RationalesStage(),
        RefineStage(),
        EvidenceStage(),
        ConsensusStage(),
        InstanceSplitStage(),
        InstancesExport(),
    ),
    Path(__file__).with_name("project.yaml"),
    (ToReview(FORM, records_to_review),),
)
