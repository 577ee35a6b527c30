"""The parts of a pack: the installed Proctor, the questions of a phase, a starting kit with guesses, and texts."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import proctor
from proctor.api import export, run
from proctor.core import (
    DISTRIBUTIONS,
    RATING_READERS,
    SUBMISSION_WRITERS,
    Benchmark,
    ConfigurationError,
    InputError,
    ProblemsError,
    UsageError,
    count_of,
    is_own,
    missing_extra,
    read_table,
    write_whole,
)
from proctor_challenge.challenge import SealedPart
from proctor_challenge.folder import handed_out_problems
from proctor_challenge.packs.programs import (
    PART_FILE,
    RATINGS_FILE,
    PackedPart,
    PackFigure,
    check_part,
    figures_of,
    packed_hash,
)
from proctor_challenge.settings import SEALED, ChallengeSettings, Kind, Phase

try:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
except ModuleNotFoundError as error:
    raise missing_extra("challenge", "a package for a platform") from error

GUESSER = "random"
"""The system that guesses."""

_PROJECT, _CORE = "proctor-challenge", DISTRIBUTIONS["proctor"]
_INFO = ("METADATA", "entry_points.txt")
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*", re.ASCII)
_MAX_IMAGE = 128  # characters
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BLIND = "text-only"
_HIDDEN = (f"{SEALED}/data", f"{SEALED}/media")
_PUBLIC = ("questions", "media")
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class PackSummary:
    """What was written. `notes` tell organisers what the platform does not do and what was left out."""

    folder: Path
    phases: tuple[str, ...]
    notes: tuple[str, ...]


def write_installation(folder: Path) -> tuple[str, ...]:
    """Writes the installed packages of Proctor that score a challenge as wheels, and `requirements.txt` with the versions
    of all packages that the core needs here, so that scores are the same: scoring needs nothing of what serves pages.
    Returns the wheels' names. Equal files give equal bytes."""
    needed = _pins(_PROJECT)
    own = {name: package for package, name in DISTRIBUTIONS.items() if name in needed}
    others = [(name, version) for name, version in sorted(_pins(_CORE).items()) if name not in own]
    write_whole(folder / "requirements.txt", "".join(f"{name}=={version}\n" for name, version in others))
    return tuple(_write_wheel(folder, name, package) for name, package in own.items())


def _write_wheel(folder: Path, name: str, package: str) -> str:
    """Writes one of Proctor's packages as a wheel. Returns the wheel's name."""
    found = distribution(name)
    stem = f"{name.replace('-', '_')}-{found.version}"
    files = dict(_package(package))
    for info in _INFO:
        if (text := found.read_text(info)) is None:
            raise ConfigurationError(f"{name} is installed without {info}: install it again")
        files[f"{stem}.dist-info/{info}"] = text.encode()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: proctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{file},sha256={_digest(content)},{len(content)}\n" for file, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{stem}-py3-none-any.whl"
    (folder / wheel).write_bytes(zipped(files))
    return wheel


def _package(package: str) -> Iterator[tuple[str, bytes]]:
    root = Path(str(import_module(package).__file__)).parent
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"{root.name}/{file.relative_to(root).as_posix()}", file.read_bytes()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _pins(project: str) -> dict[str, str]:
    """The installed version of each package that a project needs, its own included, by name."""
    pins: dict[str, str] = {}
    waiting = [Requirement(project)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in sorted({"", *requirement.extras}):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                found = distribution(name)
            except PackageNotFoundError as error:
                problem = f"{name} is not installed, and Proctor needs it: install Proctor again"
                raise ConfigurationError(problem) from error
            pins[name] = found.version.partition("+")[0]
            needed = [Requirement(line) for line in found.requires or ()]
            waiting += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    return pins


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of these contents by name, readable for all. Equal contents give equal bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return content.getvalue()


def checked_image(name: str) -> str:
    """The name of an image. Raises `UsageError` for a name that an engine or a platform would refuse."""
    if len(name) > _MAX_IMAGE or not _IMAGE.fullmatch(name):
        raise UsageError(f"--image {name[:200]!r} is no name of an image of at most {_MAX_IMAGE} characters.")
    return name


def python_image() -> str:
    """The name of the official image with this version of Python."""
    return f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"


def filled(template: str, **values: Any) -> str:
    """The text of a template with these values."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown, shell and Python, of the organiser's own words
    )
    return environment.get_template(template).render(**values)


def template_text(name: str) -> str:
    """A file that is used as it is."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class PhaseSource:
    """A phase of a challenge in `folder`, as its organiser has it."""

    folder: Path
    settings: ChallengeSettings
    phase: Phase

    @cached_property
    def sealed(self) -> SealedPart:
        """The part with the references."""
        return SealedPart(self.folder, self.settings)

    @property
    def benchmark(self) -> Benchmark:
        """The questions with their references."""
        return self.sealed.benchmark(self.phase.name)

    def baseline(self, folder: Path) -> tuple[str, Path]:
        """The name of a system and a file with its answers: the first baseline with answers to this phase, else the
        system that guesses, whose file is written into `folder`. Raises `InputError` when the benchmark has no
        submission format for guesses."""
        for baseline in self.settings.baselines:
            if self.phase.name in baseline.answers:
                return baseline.name, self.folder / baseline.answers[self.phase.name]
        guesses = write_guesses(self.benchmark, self.settings, folder)
        if guesses is None:
            location = f"phase {self.phase.name}, baselines"
            expected = "a baseline's: a pack is checked with them"
            raise InputError(self.folder, location, found="no answers", expected=expected)
        return GUESSER, guesses

    def own_figures(self, file: Path) -> list[PackFigure]:
        """The figures of a file of answers, scored here with the challenge's own files."""
        return figures_of(self.folder, self.settings, self.phase, file)

    def handed_out(self) -> PhaseSource:
        """The same phase as participants have it."""
        phase = self.phase.model_copy(update={"sealed": ""})
        return PhaseSource(self.folder, self.settings.model_copy(update={"phases": (phase,)}), phase)

    def notes(self, *, gate: str, ladder: str) -> Iterator[str]:
        """What a platform does not do for this phase; `gate` and `ladder` are its notes for phases with these."""
        judged = sum(item.answer.kind == "free_text" for item in self.benchmark.counted())
        if judged and self.benchmark.rating is None:
            questions = count_of(judged, "question")
            yield f"{self.phase.name}: no scores for {questions} in free text: no judge is asked without network."
        if self.phase.gate is not None:
            yield f"{self.phase.name}: its gate is not enforced: {gate}"
        if self.phase.results.rule == "ladder":
            yield f"{self.phase.name}: results are shown as they are: {ladder}"


def sources(folder: Path, settings: ChallengeSettings, kind: Kind) -> list[PhaseSource]:
    """The phases that accept this kind of submission: those with hidden references, or all when none has.

    Raises `InputError` for a benchmark of another package, which a pack can't carry, and for hidden questions without a
    folder of their own; `ProblemsError` when the public questions differ from the scored ones, or reveal references.
    """
    for entry in entry_points(group="proctor.benchmarks", name=settings.benchmark):
        if not is_own(entry.module):
            package = entry.module if entry.dist is None else entry.dist.name
            found = f"{settings.benchmark}, which is of the package {package}"
            raise InputError(folder, "benchmark", found=found, expected="one of Proctor's own: a pack carries no other")
    hidden = any(phase.hidden for phase in settings.phases)
    chosen = [phase for phase in settings.phases if kind in phase.accepts and (phase.hidden or not hidden)]
    found_sources = [PhaseSource(folder, settings, phase) for phase in chosen]
    for source in found_sources:
        if source.phase.hidden and Path(source.phase.sealed) == Path(SEALED):
            location, expected = f"phase {source.phase.name}, sealed", f"a folder of its own inside {SEALED}/"
            raise InputError(folder, location, found=repr(source.phase.sealed), expected=expected)
        if problems := list(_public_problems(source)):
            raise ProblemsError(folder, [f"{source.phase.name}: {line}" for line in problems])
    return found_sources


def _public_problems(source: PhaseSource) -> Iterator[str]:
    """The problems of the public questions of a phase with hidden references."""
    if not (source.phase.hidden and source.phase.questions):
        return
    if source.settings.benchmark not in RATING_READERS.names():
        yield from handed_out_problems(source.benchmark, source.handed_out().benchmark)
        return
    file = source.folder / source.phase.questions / RATINGS_FILE  # the ratings are the references
    rated = sum(bool(row.cells.get("value", "").strip()) for row in read_table(file, ()).checked(file))
    if rated:
        ratings = count_of(rated, "rating")
        yield f"found {ratings} in {source.phase.questions}/{RATINGS_FILE}, expected rows to be filled in"


def copy_part(source: PhaseSource, out: Path) -> None:
    """Copies a phase's questions into a folder, with `part.json` beside them, and checks that the copy reads the same.
    Media are copied only if the questions can't be read without them."""
    phase = source.phase
    path = phase.sealed or phase.questions
    alone = source.settings.model_copy(update={"phases": (phase,)})
    fingerprint = packed_hash(SealedPart(source.folder, alone), phase)
    named = {medium.source for item in source.benchmark.items for medium in item.media}
    data, media = source.folder / path, source.folder / (phase.media or path)
    data_location, media_location = _HIDDEN if phase.sealed else _PUBLIC
    data_location += f"/{data.name}" if data.is_file() else ""
    settings = _part_settings(alone, data_location, media_location if phase.media else "")
    packed = PackedPart(settings=settings, fingerprint=fingerprint)
    for needed in (set[str](), named):
        absent = named if phase.media else named - needed  # a folder of media may lie inside that of the questions
        _copy(data, out / data_location, {os.path.normpath(media / name) for name in absent})
        if phase.media:
            _copy_media(media, out / media_location, needed)
        try:
            check_part(packed, out)
            break
        except InputError:
            if needed == named:
                raise
            shutil.rmtree(out)
    write_whole(out / PART_FILE, packed.model_dump_json(indent=1) + "\n")


def _part_settings(settings: ChallengeSettings, data: str, media: str) -> ChallengeSettings:
    """What a scorer needs: no dates, baselines, terms, databases or resources."""
    given = settings.phases[0]
    phase = Phase(
        name=given.name,
        sealed=data if given.sealed else "",
        questions="" if given.sealed else data,
        media=media,
        condition=given.condition,
        accepts=("image",),
        budget=given.budget,
        results=given.results.model_copy(update={"rule": "all", "shown_from": None}),
    )
    return ChallengeSettings(
        benchmark=settings.benchmark, track=settings.track, ranking=settings.ranking, phases=(phase,)
    )


def _copy(data: Path, out: Path, absent: Collection[str]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    if data.is_file():
        shutil.copyfile(data, out)
        return

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(".") or os.path.normpath(Path(folder, name)) in absent]

    shutil.copytree(data, out, ignore=ignored, copy_function=shutil.copyfile)


def _copy_media(media: Path, out: Path, names: Collection[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        if not (media / name).resolve().is_relative_to(media.resolve()):
            raise InputError(media, name, found="a name that leads out of the folder", expected="a file in it")
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(media / name, out / name)


def left_out(settings: ChallengeSettings, packed: Sequence[PhaseSource], why: str) -> list[str]:
    """A note for each phase that is not packed: `why` for those with hidden references."""
    names = {source.phase.name for source in packed}
    public = "left out, since its references are public and nobody needs a server for it."
    return [f"{phase.name}: {why if phase.hidden else public}" for phase in settings.phases if phase.name not in names]


def write_guesses(benchmark: Benchmark, settings: ChallengeSettings, folder: Path) -> Path | None:
    """Writes a valid submission that scores near chance and reveals nothing; None when the benchmark has no submission
    format."""
    writer = SUBMISSION_WRITERS.of(settings.benchmark)
    if writer is None:
        return None
    out = folder / "example.json"
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        store = Path(scratch) / "guesses.sqlite"
        run(benchmark, GUESSER, conditions=_BLIND, baselines=False, store=store)
        chosen: dict[str, Any] = {"systems": GUESSER, "conditions": _BLIND, "format": writer.formats[0]}
        export(store, out, benchmark.name, **chosen)
    return out


def write_starting_kit(source: PhaseSource, folder: Path) -> None:
    """Writes the starting kit of a phase: `README.md` and an example, which is a file of guesses, or, for a benchmark
    with ratings, the answers to rate."""
    folder.mkdir(parents=True)
    settings = source.settings
    if settings.benchmark in RATING_READERS.names():
        example = "template.csv"
        shutil.copyfile(source.folder / source.phase.questions / RATINGS_FILE, folder / example)
    else:
        guesses = write_guesses(source.handed_out().benchmark, settings, folder)
        example = "" if guesses is None else guesses.name
    values = {"settings": settings, "phase": source.phase, "example": example, "version": proctor.__version__}
    (folder / "README.md").write_text(filled("starting_kit.md.j2", **values), encoding="utf-8")
