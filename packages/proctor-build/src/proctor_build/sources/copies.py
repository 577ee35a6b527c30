"""De-identified copies of a project's videos, and their manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import InputError, content_hash, count_of, read_model, write_whole
from proctor.media import Catalogue, RedactedVideo, Redaction, cache_folder, outside_of, redact
from proctor_build.pipeline import Project, SourceVideo
from proctor_build.sources.outside import OutsideFinder
from proctor_build.sources.proposals import Decision
from proctor_build.sources.stage import DECISIONS, SourceRecord, source_settings

COPIES = "sources/deidentified"
"""The folder of the copies in a project; files are named after the sources' ids."""
MANIFEST = "work/sources/manifest.json"
"""What was hidden in each copy, with the originals' paths and hashes: not to be published with the videos."""
_PACKAGES = ("proctor-eval", "av", "opencv-contrib-python-headless", "numpy", "scikit-learn")


class AppliedDecision(BaseModel):
    """A row of `decisions.csv` as applied, or rejected."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    decision: str
    redaction: Redaction
    score: float | None
    by: str
    note: str


class DeidentifiedVideo(BaseModel):
    """One copy: its original, what was hidden and who accepted it, the result of the check, and the software versions.
    `unused` are the redactions of what the source's start, end and region leave out."""

    model_config = ConfigDict(extra="forbid")

    source: str
    original: str
    original_sha256: str
    copy_path: str
    copy_sha256: str
    decisions: tuple[AppliedDecision, ...]
    unused: tuple[Redaction, ...]
    result: RedactedVideo
    finder: dict[str, JsonValue] | None
    versions: dict[str, str]
    made_from: str


class CopiesManifest(BaseModel):
    """`work/sources/manifest.json`."""

    model_config = ConfigDict(extra="forbid")

    videos: tuple[DeidentifiedVideo, ...] = ()


def deidentify(
    project: Project,
    records: Sequence[SourceRecord],
    decisions: Sequence[Decision],
    finder: OutsideFinder | None,
    on_video: Callable[[int, int], None],
) -> list[tuple[DeidentifiedVideo, bool]]:
    """Writes the copies and the manifest; returns each entry, and whether its copy was written now or before.

    Copies have no sound and no metadata. Raises `InputError` before anything is written if a row is undecided, and as
    `redact`; earlier copies stay, with their entries.
    """
    waiting = [decision for decision in decisions if not decision.decision]
    if waiting:
        first = waiting[0]
        found = f"{count_of(len(waiting), 'row')} without a decision (first: {first.source}, {first.what.kind} at {first.what.start:g} s)"
        raise InputError(project.folder / DECISIONS, found=found, expected="accept or reject, and by whom")
    there = {video.source: video for video in _manifest(project).videos}
    done: list[tuple[DeidentifiedVideo, bool]] = []
    by_id = {source.id: source for source in project.settings.sources}
    for number, record in enumerate(records, start=1):
        mine = [decision for decision in decisions if decision.source == record.id]
        made, fresh = _copy(project, by_id[record.id], record, mine, finder, there.get(record.id))
        done.append((made, fresh))
        there[record.id] = made
        kept = tuple(there[one] for one in by_id if one in there)
        _write(project.folder / MANIFEST, CopiesManifest(videos=kept))
        on_video(number, len(records))
    return done


def _copy(
    project: Project,
    source: SourceVideo,
    record: SourceRecord,
    decisions: Sequence[Decision],
    finder: OutsideFinder | None,
    before: DeidentifiedVideo | None,
) -> tuple[DeidentifiedVideo, bool]:
    settings = source_settings(project)
    unused = unused_of(source, record.duration_s) if settings.unused == "black" else ()
    accepted = [decision.redaction for decision in decisions if decision.decision == "accept"]
    applied = tuple(
        AppliedDecision(
            kind=decision.what.kind,
            decision=decision.decision,
            redaction=decision.redaction,
            score=decision.what.score,
            by=decision.by,
            note=decision.note,
        )
        for decision in decisions
    )
    versions = _versions()
    made_from = content_hash(
        {
            "original": record.sha256,
            "hidden": [redaction.model_dump(mode="json") for redaction in (*unused, *accepted)],
            "decisions": [applied_decision.model_dump(mode="json") for applied_decision in applied],
            "versions": {**versions},
        }
    )
    out = project.folder / COPIES / f"{source.id}.mp4"
    if before is not None and before.made_from == made_from and out.is_file() and _sha256(out) == before.copy_sha256:
        return before, False
    original = project.path(source, "video")
    result = redact(original, out, [*unused, *accepted])
    if _sha256(original) != record.sha256:
        raise InputError(original, found="a file that was changed meanwhile", expected="the one that was looked at")
    about: dict[str, JsonValue] | None = None
    if finder is not None:
        about = {
            "hash": finder.hash,
            "threshold": finder.threshold,
            "held_out": finder.held_out.model_dump(mode="json"),
        }
    return DeidentifiedVideo(
        source=source.id,
        original=source.video,
        original_sha256=record.sha256,
        copy_path=f"{COPIES}/{source.id}.mp4",
        copy_sha256=_sha256(out),
        decisions=applied,
        unused=tuple(unused),
        result=result,
        finder=about,
        versions=versions,
        made_from=made_from,
    ), True


def unused_of(source: SourceVideo, duration_s: float) -> tuple[Redaction, ...]:
    """Black over what a source's start, end and region leave out; times and coordinates stay the same."""
    before = (Redaction(end=source.start, how="black"),) if source.start > 0 else ()
    end = source.end
    after = (Redaction(start=end, how="black"),) if end is not None and end < duration_s else ()
    return (*before, *after, *(outside_of(source.region) if source.region is not None else ()))


def _sha256(path: Path) -> str:
    return Catalogue(cache_folder()).identity(path)


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # run from a source tree
    return found


def _manifest(project: Project) -> CopiesManifest:
    file = project.folder / MANIFEST
    return (
        read_model(file, CopiesManifest, "a manifest of de-identified videos") if file.is_file() else CopiesManifest()
    )


def _write(file: Path, manifest: CopiesManifest) -> None:
    write_whole(file, json.dumps(manifest.model_dump(mode="json"), ensure_ascii=False, indent=1) + "\n")
