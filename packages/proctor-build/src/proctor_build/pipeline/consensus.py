"""What people settled in a review, as stages read it: the file of `proctor review export --what consensus`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import InputError, count_of, read_jsonl, shell_word, unique_keys, validated
from proctor_build.pipeline.project import check_inside
from proctor_build.pipeline.stage import StageSettings, WaitingError, Work

_LONGEST = 10_000


class ReviewPart(BaseModel):
    """A part of a line; other fields are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class ReviewedBody(ReviewPart):
    """The item that was read; `origin` is the version of the project's record."""

    origin: str = ""


class ConsensusLine(ReviewPart):
    """A version of an item that all its readers have read. A form's line has its own `form`, `payload` (None where the
    readings differ and nobody has settled them) and `body`, and where they matter the `readings`. `by` is the
    adjudicator's pseudonym, "agreed", or "" where nothing is settled."""

    item: str = Field(min_length=1, max_length=_LONGEST)
    version: int = Field(ge=1, strict=True)
    current: bool = Field(strict=True)
    by: str = Field(default="", max_length=80)
    payload: ReviewPart | None
    reason: str = Field(default="", max_length=_LONGEST)
    body: ReviewedBody

    @property
    def adjudicated(self) -> bool:
        """Whether a person settled readings that differed."""
        return self.payload is not None and self.by not in ("", AGREED)


AGREED = "agreed"
"""Who settled a version on which all readings agree."""

L = TypeVar("L", bound=ConsensusLine)


def consensus_files(work: Work, named: str) -> list[Path]:
    """The file that the setting `consensus` names; none if nothing is there. Raises `InputError` for a path outside the
    project."""
    check_inside(work.project.file, f"stages: {work.stage}", "consensus", named)
    file = work.project.folder / named
    return [file] if file.exists() else []


def read_consensus(files: Sequence[Path], kind: type[L]) -> list[L]:
    """The lines of a consensus, older versions of an item first. Raises `InputError` for an invalid line, and for a
    version that is there twice."""
    found: dict[tuple[str, int], L] = {}
    for file in files:
        for location, value in read_jsonl(file, "the consensus of a study, as JSON lines", pairs=unique_keys):
            line = validated(kind, value, file, location)
            if (line.item, line.version) in found:
                what = f"version {line.version} of {line.item!r} again"
                raise InputError(file, location, found=what, expected="each version once: the consensus of one study")
            found[line.item, line.version] = line
    return [found[key] for key in sorted(found)]


def settled_lines(
    work: Work, named: str, what: str, versions: Mapping[str, str], lines: Sequence[L], also: Mapping[str, str] = {}
) -> Mapping[str, L]:
    """The line that settles each of the project's records (`versions` by item), and of the records `also` those that are
    settled. Raises `WaitingError` if a record is open, or has changed since it was settled."""
    known = {**also, **versions}
    found = {
        line.item: line
        for line in lines
        if line.current and line.payload is not None and line.body.origin == known.get(line.item)
    }
    left = versions.keys() - found.keys()
    if left:
        changed = len(left & {line.item for line in lines if line.payload is not None})
        since = f", {changed} of them changed since they were settled" if changed else ""
        raise WaitingError(
            f"{named}: {len(left)} of {count_of(len(versions), what)} to settle{since} ({_command(work, named)})"
        )
    return found


def waiting_for_readers(work: Work, named: str, what: str) -> WaitingError:
    """A stage waits until somebody has read `what`."""
    return WaitingError(f"{named}: {what} ({_command(work, named)})")


def _command(work: Work, named: str) -> str:
    out = shell_word(work.project.folder / named)
    return f"proctor review export REVIEW STUDY --what consensus --out {out} writes what is settled"


class ConsensusSettings(StageSettings):
    """The consensus of a study of the project's records, as a path inside the project: JSON lines of `proctor review
    export --what consensus`."""

    consensus: str = "sources/consensus.jsonl"
