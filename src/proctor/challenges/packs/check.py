"""Packs checked: each runs as its platform would on a baseline's answers, and its figures are compared with our own."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from proctor.challenges.packs.codabench import BUNDLE
from proctor.challenges.packs.confined import PackProgram, start_program
from proctor.challenges.packs.figures import PackFigure
from proctor.challenges.packs.parts import PhaseSource
from proctor.challenges.settings import ChallengeSettings
from proctor.core import InputError, read_json

TOLERANCE = 1e-12
"""How far a figure may be off."""

Start = Callable[[PackProgram], str]


@dataclass(frozen=True)
class PackCheck:
    """One phase: `ran` says where it ran on whose answers; `figures` were compared, `largest` is the largest difference,
    and `wrong` names the figures that are off, lacking or too many."""

    phase: str
    baseline: str
    ran: str
    figures: int
    largest: float
    wrong: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all figures are the same."""
        return not self.wrong and self.figures > 0


def check_codabench(
    folder: Path, settings: ChallengeSettings, pack: Path, start: Start = start_program
) -> Iterator[PackCheck]:
    """Runs the scoring program of each phase at Codabench's own paths, without network."""
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        bundle = Path(scratch) / "bundle"
        _extract(pack / BUNDLE, bundle)
        competition = yaml.safe_load((bundle / "competition.yaml").read_text(encoding="utf-8"))
        names = [one.name for one in settings.phases if "file" in one.accepts]
        for name, phase in zip(names, competition["phases"], strict=True):
            source = PhaseSource(folder, settings, settings.phase(name))
            task = next(one for one in competition["tasks"] if one["index"] == phase["tasks"][0])
            baseline, answers = source.baseline()
            root = Path(scratch) / name
            _as_the_worker(bundle, task, answers, root)
            command = yaml.safe_load((root / "program" / "metadata.yaml").read_text(encoding="utf-8"))["command"]
            mounts = {f"/app/{one}": root / one for one in ("program", "input", "output")}
            image, wheel = competition["docker_image"], _wheel(pack / "image")
            ran = start(PackProgram(image, shlex.split(command), "/app/program", mounts, wheel))
            given = read_json(root / "output" / "scores.json", "the scores of a pack")
            yield compared(name, baseline, ran, source.own_figures(answers), given)


def _as_the_worker(bundle: Path, task: dict[str, Any], answers: Path, root: Path) -> None:
    """The folders of a scoring step: program, references, the submission with the file that the step before adds."""
    _extract(bundle / task["scoring_program"], root / "program")
    _extract(bundle / task["reference_data"], root / "input" / "ref")
    for one in ("input/res", "output"):
        (root / one).mkdir(parents=True)
    shutil.copyfile(answers, root / "input" / "res" / answers.name)
    (root / "input" / "res" / "metadata").write_text("elapsedTime: null\nexitCode: null\n", encoding="utf-8")


def compared(phase: str, baseline: str, ran: str, own: Sequence[PackFigure], given: Any) -> PackCheck:
    """A pack's figures beside our own; those that neither has are not counted."""
    if not isinstance(given, dict):
        raise InputError(None, "the scores of a pack", found=json.dumps(given)[:80], expected="an object of figures")
    expected = {one.key: float(one.value) for one in own if one.value is not None}
    off = {name: abs(expected[name] - float(given[name])) for name in expected if name in given}
    wrong = [f"{name}: {given[name]!r}, expected {expected[name]!r}" for name, by in off.items() if not by <= TOLERANCE]
    wrong += [f"{name}: not there" for name in expected if name not in given]
    wrong += [f"{name}: not expected" for name in given if name not in expected]
    return PackCheck(phase, baseline, ran, len(off), max(off.values(), default=0.0), tuple(wrong))


def _extract(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:  # of our own making
        opened.extractall(folder)


def _wheel(folder: Path) -> Path:
    found = sorted(folder.glob("proctor_eval-*.whl"))
    if len(found) != 1:
        raise InputError(folder, found=f"{len(found)} wheels of Proctor", expected="one")
    return found[0]
