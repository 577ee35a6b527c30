"""The platforms that a challenge can be packed for, and the check of a pack: its program runs as on the platform on a
baseline's answers, and its figures are compared with our own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from proctor.api import import_answers
from proctor.core import NO_ANSWER, ConfigurationError, InputError, Status, read_json
from proctor_challenge.containers import PodmanExecutor, question_fields
from proctor_challenge.packs.codabench import BUNDLE, write_codabench
from proctor_challenge.packs.grand_challenge import ENTRYPOINT, IMAGE_FILE, TRUTH, case_ids, write_grand_challenge
from proctor_challenge.packs.parts import PackSummary, PhaseSource, sources
from proctor_challenge.packs.programs import DIGITS, PREDICTIONS, STATUSES, SUCCEEDED, PackFigure, sockets_of
from proctor_challenge.settings import SEALED, ChallengeSettings, read_challenge

ENGINES = ("podman", "docker")
FULL_DIGITS = 17
"""The digits that distinguish any two floats."""

TOLERANCE = 1e-12
"""The largest difference between a pack's figure and our own."""

_LIMIT_S = 3600.0
_SHOWN = 2000
_NO_NETWORK = """\
import sys

def _refused(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise OSError(f"no network: {event}")

sys.addaudithook(_refused)
"""


@dataclass(frozen=True)
class PackProgram:
    """What a platform starts: `command` in the folder `inside` of `image`. `mounts` are folders of this machine by
    their paths inside, of which `read_only` can't be written; `held` are folders that the image itself holds. `wheels`
    is the Proctor in the image, and `digits` the precision of the figures."""

    image: str
    command: Sequence[str]
    inside: str
    mounts: Mapping[str, Path]
    wheels: tuple[Path, ...]
    digits: int = FULL_DIGITS
    read_only: frozenset[str] = frozenset()
    held: Mapping[str, Path] = field(default_factory=dict)


Start = Callable[[PackProgram], str]
"""Runs a program, and says where it ran."""


def start_program(program: PackProgram) -> str:
    """Runs a program without network, in its image if that is on this machine, else in a process with the Proctor of
    the pack. Returns where it ran, "podman IMAGE" or "a process". Raises `ConfigurationError` when it fails."""
    engine = next((name for name in ENGINES if _has_image(name, program.image)), "")
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        if engine:
            _run(_contained(engine, program), {**os.environ})
            return f"{engine} {program.image}"
        arguments = [_outside(one, {**program.mounts, **program.held}) for one in program.command]
        arguments[0] = sys.executable if arguments[0].startswith("python") else arguments[0]
        _run(arguments, _environment(program, Path(scratch)), cwd=program.mounts.get(program.inside))
        return "a process"


def _has_image(engine: str, image: str) -> bool:
    program = shutil.which(engine)
    if program is None:
        return False
    done = subprocess.run([program, "image", "inspect", image], capture_output=True, check=False)  # noqa: S603 - a list
    return done.returncode == 0


def _contained(engine: str, program: PackProgram) -> list[str]:
    more = PodmanExecutor().arguments if engine == "podman" else []
    mounts = [
        part
        for inside, folder in program.mounts.items()
        for part in ("--volume", f"{folder}:{inside}{':ro' if inside in program.read_only else ''}")
    ]
    fixed = [engine, "run", "--rm", "--network", "none", "--pull", "never", "--workdir", program.inside]
    settings = ["--env", f"{DIGITS}={program.digits}", "--entrypoint", program.command[0]]
    return [*fixed, *more, *mounts, *settings, program.image, *program.command[1:]]


def _outside(argument: str, mounts: Mapping[str, Path]) -> str:
    """A path inside the image as a path of this machine."""
    for inside in sorted(mounts, key=len, reverse=True):
        if argument == inside or argument.startswith(f"{inside}/"):
            return f"{mounts[inside]}{argument.removeprefix(inside)}"
    return argument


def _environment(program: PackProgram, scratch: Path) -> dict[str, str]:
    """A minimal environment, in which the pack's own Proctor comes before the installed one."""
    for wheel in program.wheels:
        _extract(wheel, scratch / "wheels")
    (scratch / "hook").mkdir()
    (scratch / "hook" / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ}
    paths = os.pathsep.join(str(scratch / name) for name in ("hook", "wheels"))
    return {**kept, "PYTHONPATH": paths, "HOME": str(scratch), "TMPDIR": str(scratch), DIGITS: str(program.digits)}


def _run(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None) -> None:
    try:
        ended = subprocess.run(  # noqa: S603 - a list, no shell
            arguments, env=environment, cwd=cwd, capture_output=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"the pack's program did not end in {_LIMIT_S:g} s") from error
    if ended.returncode:
        output = (ended.stderr or ended.stdout).decode(errors="replace").strip()[-_SHOWN:]
        raise ConfigurationError(f"the pack's program ended with exit code {ended.returncode}: {output}")


@dataclass(frozen=True)
class PackCheck:
    """The check of one phase with the answers of `baseline`. `ran` says where the program ran; `figures` is the number
    of figures compared, `largest` the largest difference, and `wrong` names figures that differ, lack or are extra."""

    phase: str
    baseline: str
    ran: str
    figures: int
    largest: float
    wrong: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all figures agree."""
        return not self.wrong and self.figures > 0


def check_codabench(
    folder: Path, settings: ChallengeSettings, pack: Path, start: Start = start_program
) -> Iterator[PackCheck]:
    """Runs the scoring program of each phase at Codabench's paths, without network."""
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
            _write_scoring_step(bundle, task, answers, root)
            command = yaml.safe_load((root / "program" / "metadata.yaml").read_text(encoding="utf-8"))["command"]
            mounts = {f"/app/{one}": root / one for one in ("program", "input", "output")}
            image, wheels = competition["docker_image"], _wheels(pack / "image")
            ran = start(PackProgram(image, shlex.split(command), "/app/program", mounts, wheels))
            scores = read_json(root / "output" / "scores.json", "the scores of a pack")
            yield compared(name, baseline, ran, source.own_figures(answers), scores)


def _write_scoring_step(bundle: Path, task: dict[str, Any], answers: Path, root: Path) -> None:
    """Writes the folders of a scoring step as Codabench's worker does, with the metadata of the step before."""
    _extract(bundle / task["scoring_program"], root / "program")
    _extract(bundle / task["reference_data"], root / "input" / "ref")
    for one in ("input/res", "output"):
        (root / one).mkdir(parents=True)
    shutil.copyfile(answers, root / "input" / "res" / answers.name)
    (root / "input" / "res" / "metadata").write_text("elapsedTime: null\nexitCode: null\n", encoding="utf-8")


def check_grand_challenge(
    folder: Path, settings: ChallengeSettings, pack: Path, start: Start = start_program
) -> Iterator[PackCheck]:
    """Runs the evaluation of each phase at Grand Challenge's paths, without network, on jobs with a baseline's answers.
    Counts by status are not compared, since the platform only knows whether a job failed."""
    wheels, image = _wheels(pack / "evaluation"), (pack / "evaluation" / IMAGE_FILE).read_text(encoding="utf-8").strip()
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
            program = PackProgram(image, ENTRYPOINT, "/opt/app", mounts, wheels, read_only=fixed, held=held)
            ran = start(program)
            metrics = read_json(root / "output" / "metrics.json", "the metrics of a pack")
            figures = source.own_figures(answers)
        own = [figure for figure in figures if figure.name not in STATUSES]
        aggregates = {name: value for name, value in _aggregates(metrics).items() if name not in STATUSES}
        yield compared(source.phase.name, baseline, ran, own, aggregates)


def _aggregates(metrics: Any) -> dict[str, Any]:
    """The aggregates of the metrics. Raises `InputError` when there are results of single questions, too."""
    if not isinstance(metrics, dict) or metrics.get("results") != [] or not isinstance(metrics.get("aggregates"), dict):
        raise InputError("metrics.json", found=json.dumps(metrics)[:80], expected="aggregates and no results")
    return dict(metrics["aggregates"])


def write_jobs(source: PhaseSource, answers: Path, folder: Path) -> None:
    """Writes answers as the input of an evaluation: `predictions.json` and each job's output."""
    sockets = sockets_of(source.settings.benchmark)
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        store, condition = Path(scratch) / "answers.sqlite", source.phase.condition
        imported = import_answers(source.benchmark, answers, name="baseline", condition=condition, store=store)
        given = imported.store.answers(imported.runs[0])
        imported.store.close()
    jobs = []
    for number, (case, item) in enumerate(case_ids(source).items(), start=1):
        name, answer = str(UUID(int=number)), given.get(item.id)
        done = answer is not None and answer.status is Status.ANSWERED and answer.reason != NO_ANSWER
        question = question_fields(case, item, source.phase.budget.question_s)
        video = f"https://grand-challenge.org/media/{case}/{sockets.video.relative_path}"
        jobs.append(
            {
                "pk": name,
                "inputs": [
                    {"socket": sockets.question.description, "file": None, "image": None, "value": question},
                    {"socket": sockets.video.description, "file": video, "image": None, "value": None},
                ],
                "outputs": [{"socket": sockets.answer.description, "file": None, "image": None, "value": None}],
                "exec_duration": None,
                "invoke_duration": None,
                "status": SUCCEEDED if done else "Failed",
            }
        )
        location = folder / name / "output"
        location.mkdir(parents=True)
        if answer is not None and done:
            (location / sockets.answer.relative_path).write_text(json.dumps({"answer": answer.text}), encoding="utf-8")
    (folder / PREDICTIONS).write_text(json.dumps(jobs), encoding="utf-8")


def compared(phase: str, baseline: str, ran: str, own: Sequence[PackFigure], given: Any) -> PackCheck:
    """Compares a pack's figures with our own. Figures without a value in both are not counted."""
    if not isinstance(given, dict):
        raise InputError("the scores of a pack", found=json.dumps(given)[:80], expected="an object of figures")
    expected = {pack_figure.key: float(pack_figure.value) for pack_figure in own if pack_figure.value is not None}
    off = {name: abs(expected[name] - float(given[name])) for name in expected if name in given}
    wrong = [f"{name}: {given[name]!r}, expected {expected[name]!r}" for name, by in off.items() if not by <= TOLERANCE]
    wrong += [f"{name}: not there" for name in expected if name not in given]
    wrong += [f"{name}: not expected" for name in given if name not in expected]
    return PackCheck(phase, baseline, ran, len(off), max(off.values(), default=0.0), tuple(wrong))


def _extract(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:  # of our own making
        opened.extractall(folder)  # noqa: S202


def _wheels(folder: Path) -> tuple[Path, ...]:
    """The wheels of Proctor's packages in a pack. Raises `InputError` for a pack without those that score."""
    found = tuple(sorted(folder.glob("proctor_*.whl")))
    if not any(wheel.name.startswith("proctor_challenge-") for wheel in found):
        raise InputError(
            folder, found=f"{len(found)} wheels of Proctor", expected="proctor_challenge-….whl and what it needs"
        )
    return found


_WRITERS = {"codabench": write_codabench, "grand-challenge": write_grand_challenge}
_CHECKS = {"codabench": check_codabench, "grand-challenge": check_grand_challenge}
PLATFORMS = tuple(_WRITERS)
"""The platforms that a challenge can be packed for."""


def pack_folder(folder: Path, platform: str) -> Path:
    """The default folder of a pack: inside the sealed part, since it holds references."""
    return folder / SEALED / "packs" / platform


def write_pack(platform: str, folder: Path, out: Path, image: str = "") -> PackSummary:
    """Writes the pack of a challenge into a new folder. `image` is the name of the scorer's image on the platform.

    Raises `InputError` for what the platform can't do, and for a phase without answers to check the pack with.
    """
    return _WRITERS[platform](folder, read_challenge(folder, sealed=True), out, image)


def check_pack(platform: str, folder: Path, pack: Path) -> Iterator[PackCheck]:
    """Runs a pack as its platform would, without network, on a baseline's answers to each phase, and compares its
    figures with those of the challenge in `folder`."""
    return _CHECKS[platform](folder, read_challenge(folder, sealed=True), pack)
