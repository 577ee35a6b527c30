"""The questions of a phase, copied into a pack: all that marks, and those media that they can't be read without."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path

from proctor.challenges.checks import handed_out_problems
from proctor.challenges.packs.figures import (
    PART_FILE,
    RATINGS_FILE,
    PackedPart,
    PackFigure,
    check_part,
    figures_of,
    packed_hash,
)
from proctor.challenges.packs.guesses import GUESSER, write_guesses
from proctor.challenges.sealed import SealedPart
from proctor.challenges.settings import SEALED, ChallengeSettings, Kind, Phase
from proctor.core import Benchmark, InputError, ProblemsError, count_of, read_table, reader_of, write_whole

_HIDDEN = (f"{SEALED}/data", f"{SEALED}/media")
_PUBLIC = ("questions", "media")


@dataclass(frozen=True)
class PhaseSource:
    """A phase of a challenge in `folder`, as its organiser has it."""

    folder: Path
    settings: ChallengeSettings
    phase: Phase

    @cached_property
    def sealed(self) -> SealedPart:
        """The part that marks."""
        return SealedPart(self.folder, self.settings)

    @property
    def benchmark(self) -> Benchmark:
        """The questions that are marked."""
        return self.sealed.benchmark(self.phase.name)

    def baseline(self, folder: Path) -> tuple[str, Path]:
        """A name, and a file of answers: of the first baseline that has some for this phase, else of the system that
        guesses, written into a folder. Raises `InputError` where guesses can't be written as a submission."""
        for one in self.settings.baselines:
            if self.phase.name in one.answers:
                return one.name, self.folder / one.answers[self.phase.name]
        guessed = write_guesses(self.benchmark, self.settings, folder)
        if guessed is None:
            place = f"phase {self.phase.name}, baselines"
            expected = "a baseline's: a pack is checked with them"
            raise InputError(self.folder, place, found="no answers", expected=expected)
        return GUESSER, guessed

    def own_figures(self, file: Path) -> list[PackFigure]:
        """The figures of a file of answers, marked here by the challenge's own files."""
        return figures_of(self.folder, self.settings, self.phase, file)

    def handed_out(self) -> PhaseSource:
        """The same phase as participants have it."""
        phase = self.phase.model_copy(update={"sealed": ""})
        return PhaseSource(self.folder, self.settings.model_copy(update={"phases": (phase,)}), phase)

    def waiting(self) -> int:
        """How many questions only a judge could mark, which no pack asks."""
        benchmark = self.benchmark
        if benchmark.rating is not None:
            return 0
        return sum(item.answer.kind == "free_text" for item in benchmark.counted())


def sources(folder: Path, settings: ChallengeSettings, kind: Kind) -> list[PhaseSource]:
    """The phases that accept this kind of submission: those with hidden references, else all of them.

    Raises `InputError` for a benchmark of another package than Proctor, which a pack does not carry, and for a phase
    whose questions can't be told from the rest of the sealed part; `ProblemsError` where the handed-out
    questions are others, or tell what they should not."""
    for one in entry_points(group="proctor.benchmarks", name=settings.benchmark):
        if one.dist is not None and one.dist.name != "proctor-eval":
            found = f"{settings.benchmark}, which is of the package {one.dist.name}"
            raise InputError(folder, "benchmark", found=found, expected="one of Proctor's own: a pack carries no other")
    hidden = any(one.hidden for one in settings.phases)
    chosen = [one for one in settings.phases if kind in one.accepts and (one.hidden or not hidden)]
    phases = [PhaseSource(folder, settings, one) for one in chosen]
    for source in phases:
        if source.phase.hidden and Path(source.phase.sealed) == Path(SEALED):
            place, expected = f"phase {source.phase.name}, sealed", f"a folder of its own inside {SEALED}/"
            raise InputError(folder, place, found=repr(source.phase.sealed), expected=expected)
        if problems := list(_told_too_much(source)):
            raise ProblemsError(folder, [f"{source.phase.name}: {line}" for line in problems])
    return phases


def _told_too_much(source: PhaseSource) -> Iterator[str]:
    """What is wrong with the questions that a phase with hidden references hands out."""
    if not (source.phase.hidden and source.phase.questions):
        return
    if not reader_of(source.settings.benchmark, source.settings.track).ratings:
        yield from handed_out_problems(source.benchmark, source.handed_out().benchmark)
        return
    file = source.folder / source.phase.questions / RATINGS_FILE  # whose answers are marked has the references
    rows = read_table(file, ()).checked(file)
    rated = sum(bool(row.cells.get("value", "").strip()) for row in rows)
    if rated:
        ratings = count_of(rated, "rating")
        yield f"found {ratings} in {source.phase.questions}/{RATINGS_FILE}, expected rows to be filled in"


def copy_part(source: PhaseSource, out: Path) -> PackedPart:
    """Copies a phase's questions into a folder, with `part.json` beside them, and checks that they are read as the same
    ones there."""
    phase = source.phase
    path = phase.sealed or phase.questions
    alone = source.settings.model_copy(update={"phases": (phase,)})
    fingerprint = packed_hash(SealedPart(source.folder, alone), phase)
    named = {medium.source for item in source.benchmark.items for medium in item.media}
    whole, media = source.folder / path, source.folder / (phase.media or path)
    inside, beside = _HIDDEN if phase.sealed else _PUBLIC
    inside += f"/{whole.name}" if whole.is_file() else ""
    packed = PackedPart(settings=_told(alone, inside, beside if phase.media else ""), fingerprint=fingerprint)
    for needed in (set[str](), named):
        left_out = named if phase.media else named - needed  # a folder of media may lie inside that of the questions
        _copy(whole, out / inside, {os.path.normpath(media / name) for name in left_out})
        if phase.media:
            _copy_media(media, out / beside, needed)
        try:
            check_part(packed, out)
            break
        except InputError:
            if needed == named:
                raise
            shutil.rmtree(out)
    write_whole(out / PART_FILE, packed.model_dump_json(indent=1) + "\n")
    return packed


def _told(settings: ChallengeSettings, data: str, media: str) -> ChallengeSettings:
    """What a scorer has to know, and no more: no dates, baselines, terms, databases or resources."""
    one = settings.phases[0]
    phase = Phase(
        name=one.name,
        sealed=data if one.sealed else "",
        questions="" if one.sealed else data,
        media=media,
        condition=one.condition,
        accepts=("image",),
        budget=one.budget,
        results=one.results.model_copy(update={"rule": "all", "shown_from": None}),
    )
    return ChallengeSettings(
        benchmark=settings.benchmark, track=settings.track, ranking=settings.ranking, phases=(phase,)
    )


def _copy(whole: Path, place: Path, absent: Collection[str]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if whole.is_file():
        shutil.copyfile(whole, place)
        return

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".") or os.path.normpath(Path(folder, name)) in absent]

    shutil.copytree(whole, place, ignore=ignored, copy_function=shutil.copyfile)


def _copy_media(media: Path, out: Path, names: Collection[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        if not (media / name).resolve().is_relative_to(media.resolve()):
            raise InputError(media, name, found="a name that leads out of the folder", expected="a file in it")
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(media / name, out / name)


def left_out(settings: ChallengeSettings, packed: Collection[PhaseSource], why: str) -> list[str]:
    """What is said of the phases that are not packed: `why` of those with hidden references."""
    names = {one.phase.name for one in packed}
    public = "left out, since its references are public and nobody needs a server for it."
    return [f"{one.name}: {why if one.hidden else public}" for one in settings.phases if one.name not in names]
