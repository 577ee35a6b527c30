"""A pack's program started as its platform does: the same paths, no network; in its image where that is there, else in
a process of this machine with what the pack carries. Packs checked: each runs as its platform would on a baseline's answers, and its figures are compared with our own. The platforms that a challenge can be packed for."""

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
from proctor.challenges.packs.codabench import BUNDLE, write_codabench
from proctor.challenges.packs.grand_challenge import (
    ENTRYPOINT,
    IMAGE_FILE,
    TRUTH,
    case_ids,
    question_of,
    write_grand_challenge,
)
from proctor.challenges.packs.parts import PackSummary, PhaseSource, sources
from proctor.challenges.packs.programs import DIGITS, PREDICTIONS, STATUSES, SUCCEEDED, PackFigure, sockets_of
from proctor.challenges.settings import SEALED, ChallengeSettings, read_challenge
from proctor.containers import PodmanExecutor
from proctor.core import NO_ANSWER, ConfigurationError, InputError, Status, read_json

ENGINES = ("podman", "docker")
FULL_DIGITS = 17
"""As many digits as tell any two numbers apart."""

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
    """What a platform starts: `command` in the folder `inside` of the `image`, with folders of this machine `mounts` by
    their paths in there. `wheel` is the Proctor that the image is made with; `digits` how figures are rounded."""

    image: str
    command: Sequence[str]
    inside: str
    mounts: Mapping[str, Path]
    wheel: Path
    digits: int = FULL_DIGITS
    read_only: frozenset[str] = frozenset()
    held: Mapping[str, Path] = field(default_factory=dict)


def start_program(program: PackProgram) -> str:
    """Runs it to its end and says where: "podman IMAGE" or "a process". Raises `ConfigurationError` where it fails."""
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
    found = shutil.which(engine)
    if found is None:
        return False
    asked = subprocess.run([found, "image", "inspect", image], capture_output=True, check=False)  # noqa: S603 - a list
    return asked.returncode == 0


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
    """A path in there as it is called here."""
    for inside in sorted(mounts, key=len, reverse=True):
        if argument == inside or argument.startswith(f"{inside}/"):
            return f"{mounts[inside]}{argument.removeprefix(inside)}"
    return argument


def _environment(program: PackProgram, scratch: Path) -> dict[str, str]:
    """No more than a program needs, and the pack's own Proctor before the one that is installed."""
    _extract(program.wheel, scratch / "wheel")
    (scratch / "hook").mkdir()
    (scratch / "hook" / "sitecustomize.py").write_text(_NO_NETWORK, encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ}
    paths = os.pathsep.join(str(scratch / name) for name in ("hook", "wheel"))
    return {**kept, "PYTHONPATH": paths, "HOME": str(scratch), "TMPDIR": str(scratch), DIGITS: str(program.digits)}


def _run(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None) -> None:
    try:
        ended = subprocess.run(  # noqa: S603 - a list, no shell
            arguments, env=environment, cwd=cwd, capture_output=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"the pack's program did not end in {_LIMIT_S:g} s") from error
    if ended.returncode:
        said = (ended.stderr or ended.stdout).decode(errors="replace").strip()[-_SHOWN:]
        raise ConfigurationError(f"the pack's program ended with exit code {ended.returncode}: {said}")


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


_WRITERS = {"codabench": write_codabench, "grand-challenge": write_grand_challenge}
_CHECKS = {"codabench": check_codabench, "grand-challenge": check_grand_challenge}
PLATFORMS = tuple(_WRITERS)
"""Their names."""


def pack_folder(folder: Path, platform: str) -> Path:
    """Where a challenge's pack goes where no other place is named: into the sealed part, since it holds references."""
    return folder / SEALED / "packs" / platform


def write_pack(platform: str, folder: Path, out: Path, image: str = "") -> PackSummary:
    """Writes the pack of a challenge into a new folder. `image` is the name of the scorer's image on the platform.

    Raises `InputError` for what the platform can't do, and where a phase has no baseline's answers.
    """
    return _WRITERS[platform](folder, read_challenge(folder, sealed=True), out, image)


def check_pack(platform: str, folder: Path, pack: Path) -> Iterator[PackCheck]:
    """Runs a pack as its platform would, without network, on the answers of a baseline of each phase, and compares its
    figures with those of the challenge in `folder`."""
    return _CHECKS[platform](folder, read_challenge(folder, sealed=True), pack)
