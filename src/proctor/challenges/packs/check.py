"""Packs checked: each runs as its platform would on a baseline's answers, and its figures are compared with our own."""

from __future__ import annotations

import json
import shlex
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from proctor.api import import_answers
from proctor.challenges.packs.codabench import BUNDLE
from proctor.challenges.packs.confined import PackProgram, start_program
from proctor.challenges.packs.figures import STATUSES, PackFigure
from proctor.challenges.packs.grand_challenge import ENTRYPOINT, IMAGE_FILE, TRUTH, case_ids, question_of
from proctor.challenges.packs.parts import PhaseSource, sources
from proctor.challenges.packs.sockets import PREDICTIONS, SUCCEEDED, sockets_of
from proctor.challenges.settings import ChallengeSettings
from proctor.core import NO_ANSWER, InputError, Status, read_json

TOLERANCE = 1e-12
"""How far a figure may be off."""

Start = Callable[[PackProgram], str]


@dataclass(frozen=True)
class PackCheck:
    """One phase: `ran` says where it ran on whose answers; `figures` were compared, `largest` is the largest
    difference, and `wrong` names the figures that are off, lacking or too many."""

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
        for source, phase in zip(sources(folder, settings, "file"), competition["phases"], strict=True):
            name = source.phase.name
            task = next(one for one in competition["tasks"] if one["index"] == phase["tasks"][0])
            root = Path(scratch) / name
            root.mkdir()
            baseline, answers = source.baseline(root)
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


def check_grand_challenge(
    folder: Path, settings: ChallengeSettings, pack: Path, start: Start = start_program
) -> Iterator[PackCheck]:
    """Runs the evaluation of each phase at Grand Challenge's own paths, without network, on jobs with a baseline's
    answers. How answers failed is not compared: of a job only that it failed is known."""
    wheel, image = _wheel(pack / "evaluation"), (pack / "evaluation" / IMAGE_FILE).read_text(encoding="utf-8").strip()
    for source in sources(folder, settings, "image"):
        with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
            root = Path(scratch)
            baseline, answers = source.baseline(root)
            with tarfile.open(pack / source.phase.name / TRUTH) as archive:
                archive.extractall(root / "truth", filter="data")
            write_jobs(source, answers, root / "input")
            (root / "output").mkdir()
            (root / "output").chmod(0o777)  # the platform's containers are not root
            mounts = dict(zip(ENTRYPOINT[2:], (root / "input", root / "output", root / "truth"), strict=True))
            held, fixed = {"/opt/app": pack / "evaluation"}, frozenset({ENTRYPOINT[2], ENTRYPOINT[4]})
            program = PackProgram(image, ENTRYPOINT, "/opt/app", mounts, wheel, read_only=fixed, held=held)
            ran = start(program)
            given = read_json(root / "output" / "metrics.json", "the metrics of a pack")
            figures = source.own_figures(answers)
        own = [one for one in figures if one.name not in STATUSES]
        aggregates = {name: value for name, value in _aggregates(given).items() if name not in STATUSES}
        yield compared(source.phase.name, baseline, ran, own, aggregates)


def _aggregates(metrics: Any) -> dict[str, Any]:
    """The metrics' aggregates. Raises `InputError` where there is a row of a question beside them."""
    if not isinstance(metrics, dict) or metrics.get("results") != [] or not isinstance(metrics.get("aggregates"), dict):
        raise InputError("metrics.json", found=json.dumps(metrics)[:80], expected="aggregates and no results")
    return dict(metrics["aggregates"])


def write_jobs(source: PhaseSource, answers: Path, folder: Path) -> None:
    """Writes answers as the platform hands jobs to an evaluation: `predictions.json` and each job's output."""
    sockets = sockets_of(source.settings.benchmark)
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        how: dict[str, Any] = {"name": "baseline", "condition": source.phase.condition}
        found = import_answers(source.benchmark, answers, store=Path(scratch) / "answers.sqlite", **how)
        given = found.store.answers(found.runs[0])
        found.store.close()
    jobs = []
    for number, (case, item) in enumerate(case_ids(source).items(), start=1):
        name, said = str(UUID(int=number)), given.get(item.id)
        done = said is not None and said.status is Status.ANSWERED and said.reason != NO_ANSWER
        question = question_of(case, item, source.phase.budget.question_s)
        video = f"https://grand-challenge.org/media/{case}/{sockets.video.relative_path}"
        jobs.append(
            {
                "pk": name,
                "inputs": [
                    {"socket": sockets.question.told, "file": None, "image": None, "value": question},
                    {"socket": sockets.video.told, "file": video, "image": None, "value": None},
                ],
                "outputs": [{"socket": sockets.answer.told, "file": None, "image": None, "value": None}],
                "exec_duration": None,
                "invoke_duration": None,
                "status": SUCCEEDED if done else "Failed",
            }
        )
        place = folder / name / "output"
        place.mkdir(parents=True)
        if said is not None and done:
            (place / sockets.answer.relative_path).write_text(json.dumps({"answer": said.text}), encoding="utf-8")
    (folder / PREDICTIONS).write_text(json.dumps(jobs), encoding="utf-8")


def compared(phase: str, baseline: str, ran: str, own: Sequence[PackFigure], given: Any) -> PackCheck:
    """A pack's figures beside our own; those that neither has are not counted."""
    if not isinstance(given, dict):
        raise InputError("the scores of a pack", found=json.dumps(given)[:80], expected="an object of figures")
    expected = {one.key: float(one.value) for one in own if one.value is not None}
    off = {name: abs(expected[name] - float(given[name])) for name in expected if name in given}
    wrong = [f"{name}: {given[name]!r}, expected {expected[name]!r}" for name, by in off.items() if not by <= TOLERANCE]
    wrong += [f"{name}: not there" for name in expected if name not in given]
    wrong += [f"{name}: not expected" for name in given if name not in expected]
    return PackCheck(phase, baseline, ran, len(off), max(off.values(), default=0.0), tuple(wrong))


def _extract(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:  # of our own making
        opened.extractall(folder)  # noqa: S202


def _wheel(folder: Path) -> Path:
    found = sorted(folder.glob("proctor_eval-*.whl"))
    if len(found) != 1:
        raise InputError(folder, found=f"{len(found)} wheels of Proctor", expected="one")
    return found[0]
