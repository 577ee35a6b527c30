"""What a pack carries of this installation: Proctor as a wheel, and the versions of all that it needs. The texts of a pack, from templates. The questions of a phase, copied into a pack: all that marks, and those media that they can't be read without. Guesses: a submission that is valid, scores near chance, and tells nothing. What participants start with: how to hand in, and a file of answers that is valid."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import proctor
from proctor.api import export, run
from proctor.challenges.challenge import SealedPart
from proctor.challenges.folder import handed_out_problems
from proctor.challenges.packs.programs import (
    PART_FILE,
    RATINGS_FILE,
    PackedPart,
    PackFigure,
    check_part,
    figures_of,
    packed_hash,
)
from proctor.challenges.settings import SEALED, ChallengeSettings, Kind, Phase
from proctor.core import (
    Benchmark,
    ConfigurationError,
    InputError,
    ProblemsError,
    UsageError,
    count_of,
    read_table,
    reader_of,
    write_whole,
)

_PROJECT = "proctor-eval"
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*", re.ASCII)
_LONGEST_IMAGE = 128
_EPOCH = (1980, 1, 1, 0, 0, 0)
_INFO = ("METADATA", "entry_points.txt")


@dataclass(frozen=True)
class PackSummary:
    """What was written. `notes` are what an organiser should know: what the platform does not do, what was left out."""

    folder: Path
    phases: tuple[str, ...]
    notes: tuple[str, ...]


def write_carried(folder: Path) -> str:
    """Writes Proctor's wheel and `requirements.txt` into a folder, and gives the wheel's name."""
    write_requirements(folder / "requirements.txt")
    return write_wheel(folder)


def write_wheel(folder: Path) -> str:
    """Writes the installed Proctor as a wheel, the same bytes for the same files, and gives its name."""
    found = distribution(_PROJECT)
    stem = f"proctor_eval-{proctor.__version__}"
    files = dict(_package())
    for name in _INFO:
        if (text := found.read_text(name)) is None:
            raise ConfigurationError(f"{_PROJECT} is installed without {name}: install it again")
        files[f"{stem}.dist-info/{name}"] = text.encode()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: proctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{stem}-py3-none-any.whl"
    write_zip(folder / wheel, files)
    return wheel


def _package() -> Iterator[tuple[str, bytes]]:
    root = Path(proctor.__file__).parent
    for file in sorted(root.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield f"{root.name}/{file.relative_to(root).as_posix()}", file.read_bytes()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def write_zip(out: Path | IO[bytes], files: Mapping[str, bytes]) -> None:
    """Writes an archive of these contents by name, the same bytes for the same contents."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipped_name(name), content)


def zipped_name(name: str) -> zipfile.ZipInfo:
    """A member that everybody may read, compressed, whose time says nothing."""
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def write_requirements(file: Path) -> None:
    """Writes the versions of all packages that Proctor needs here, itself left out: marks are then the same."""
    pins: dict[str, str] = {}
    waiting = [Requirement(_PROJECT)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        asked = waiting.pop()
        for extra in ("", *sorted(asked.extras)):
            name = canonicalize_name(asked.name)
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                found = distribution(name)
            except PackageNotFoundError as error:
                raise ConfigurationError(
                    f"{name} is not installed, and Proctor needs it: install Proctor again"
                ) from error
            pins[name] = found.version
            needed = [Requirement(line) for line in found.requires or ()]
            waiting += [one for one in needed if one.marker is None or one.marker.evaluate({"extra": extra})]
    del pins[canonicalize_name(_PROJECT)]
    write_whole(file, "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in sorted(pins.items())))


def checked_image(name: str) -> str:
    """An image's name. Raises `UsageError` for one that an engine or a platform would not take."""
    if len(name) > _LONGEST_IMAGE or not _IMAGE.fullmatch(name):
        raise UsageError("--image", f"a name of an image, at most {_LONGEST_IMAGE} characters", found=repr(name[:200]))
    return name


def python_image() -> str:
    """The image with this version of Python."""
    return f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"


_TEMPLATES = Path(__file__).parent / "templates"


def filled(template: str, **values: Any) -> str:
    """A template's text with these values."""
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
    """A file of a pack that needs nothing filled in."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


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


GUESSER = "random"
"""The system that guesses."""

_BLIND = "text-only"


def write_guesses(benchmark: Benchmark, settings: ChallengeSettings, folder: Path) -> Path | None:
    """Writes the answers of the system that guesses as a submission, and gives the file; None where the benchmark has
    no format for answers."""
    forms = reader_of(settings.benchmark, settings.track).submission_formats
    if not forms:
        return None
    out = folder / "example.json"
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        store = Path(scratch) / "guesses.sqlite"
        run(benchmark, GUESSER, conditions=_BLIND, baselines=False, store=store)
        how: dict[str, Any] = {"systems": GUESSER, "conditions": _BLIND, "format": forms[0]}
        export(store, out, benchmark.name, **how)
    return out


def write_starting_kit(source: PhaseSource, folder: Path) -> None:
    """Writes the kit of a phase: `README.md`, and an example by the system that guesses, where the benchmark has a
    format for answers; of a benchmark with ratings the answers to be scored."""
    folder.mkdir(parents=True)
    example = _example(source, folder)
    settings, phase = source.settings, source.phase
    how: dict[str, Any] = {"settings": settings, "phase": phase, "example": example, "version": proctor.__version__}
    (folder / "README.md").write_text(filled("starting_kit.md.j2", **how), encoding="utf-8")


def _example(source: PhaseSource, folder: Path) -> str:
    if reader_of(source.settings.benchmark, source.settings.track).ratings:
        shutil.copyfile(source.folder / source.phase.questions / RATINGS_FILE, folder / "template.csv")
        return "template.csv"
    written = write_guesses(source.handed_out().benchmark, source.settings, folder)
    return "" if written is None else written.name
