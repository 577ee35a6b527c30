"""The questions of a phase, copied into a pack: all that marks, and of the media only what they can't be read without."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from proctor.challenges.packs.figures import PART_FILE, PackedPart, PackFigure, figures_of, packed_hash, part_benchmark
from proctor.challenges.sealed import SealedPart
from proctor.challenges.settings import SEALED, ChallengeSettings, Phase
from proctor.core import Benchmark, InputError, write_whole

FULL_DIGITS = 17
"""As many digits as tell any two numbers apart."""

_DATA, _MEDIA = "data", "media"


@dataclass(frozen=True)
class PhaseSource:
    """A phase of a challenge in `folder`, as its organiser has it."""

    folder: Path
    settings: ChallengeSettings
    phase: Phase

    @property
    def marked(self) -> str:
        """Where the questions lie that answers are marked by. Raises `InputError` where the whole sealed part would go
        out with them."""
        path = self.phase.sealed or self.phase.questions
        if Path(path) == Path(SEALED):
            place = f"phase {self.phase.name}, sealed"
            raise InputError(self.folder, place, found=repr(path), expected=f"a folder of its own inside {SEALED}/")
        return path

    def benchmark(self, path: str) -> Benchmark:
        """The questions that are marked, or at the path that is handed out, with the phase's budget."""
        sealed = SealedPart(self.folder, self.settings)
        handed_out = sealed.handed_out(self.phase.name) if path == self.phase.questions else None
        return handed_out or sealed.benchmark(self.phase.name)

    def part(self, path: str, benchmark: Benchmark) -> PackedPart:
        """How these questions are read and marked, at the challenge's own paths."""
        return PackedPart(
            benchmark=self.settings.benchmark,
            track=self.settings.track,
            data=path,
            media=self.phase.media or path,
            condition=self.phase.condition,
            budget_s=self.phase.budget.question_s,
            digits=self.phase.results.digits,
            fingerprint=packed_hash(benchmark, self.folder / path),
        )

    def baseline(self) -> tuple[str, Path]:
        """The first baseline with answers of this phase. Raises `InputError` where there is none."""
        for one in self.settings.baselines:
            if self.phase.name in one.answers:
                return one.name, self.folder / one.answers[self.phase.name]
        place = f"phase {self.phase.name}, baselines"
        raise InputError(self.folder, place, found="no answers", expected="a baseline's: a pack is checked with them")

    def own_figures(self, file: Path) -> list[PackFigure]:
        """The figures of a file of answers, marked here by the challenge's own files."""
        benchmark = self.benchmark(self.marked)
        return figures_of(self.part(self.marked, benchmark), benchmark, self.folder / self.marked, file)

    def waiting(self, benchmark: Benchmark) -> int:
        """How many questions only a judge could mark, which no pack asks."""
        if benchmark.rating is not None:
            return 0
        return sum(item.answer.kind == "free_text" for item in benchmark.counted())


def check_own_benchmark(settings: ChallengeSettings) -> None:
    """Raises `InputError` for a benchmark of another package than Proctor: a pack carries Proctor alone."""
    for one in entry_points(group="proctor.benchmarks", name=settings.benchmark):
        if one.dist is not None and one.dist.name != "proctor-eval":
            found = f"{settings.benchmark}, which is of the package {one.dist.name}"
            raise InputError(
                None, "benchmark", found=found, expected="one of Proctor's own, which is all that a pack carries"
            )


def copy_part(source: PhaseSource, path: str, out: Path) -> PackedPart:
    """Copies the questions at a path of the challenge into a folder, with `part.json` beside them, and checks that they
    are read as the same ones there."""
    benchmark = source.benchmark(path)
    named = {medium.source for item in benchmark.items for medium in item.media}
    beside = not source.phase.media
    whole = source.folder / path
    media = source.folder / (source.phase.media or path)
    inside = f"{_DATA}/{whole.name}" if whole.is_file() else _DATA
    changed = {"data": inside, "media": inside if beside else _MEDIA}
    packed = source.part(path, benchmark).model_copy(update=changed)
    for needed in (set[str](), named):
        left_out = named - needed if beside else named  # a folder of media may lie inside that of the questions
        _copy(whole, out / inside, {os.path.normpath(media / name) for name in left_out})
        if not beside:
            _copy_media(media, out / _MEDIA, needed)
        try:
            part_benchmark(packed, out)
            break
        except InputError:
            if needed == named:
                raise
            shutil.rmtree(out)
    write_whole(out / PART_FILE, packed.model_dump_json(indent=2) + "\n")
    return packed


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
