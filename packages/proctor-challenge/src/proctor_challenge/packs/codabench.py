"""A challenge as a Codabench bundle (competition.yaml, version 2), with the image that its scoring program runs in."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

import proctor
from proctor.core import InputError, count_of, input_text, whole_folder
from proctor_challenge.packs.parts import (
    PackSummary,
    PhaseSource,
    checked_image,
    copy_part,
    filled,
    left_out,
    python_image,
    sources,
    write_installation,
    write_starting_kit,
    zipped,
)
from proctor_challenge.packs.programs import MAX_KEY, PackFigure
from proctor_challenge.settings import ChallengeSettings

BUNDLE = "bundle.zip"
COMMAND = "python3 /app/program/score.py /app/input /app/output"
"""The command by which the platform starts the scoring program."""

_LIMIT_S = 1800  # of the scoring step
_SCORE = """\
\"\"\"The scoring program: Proctor scores the answers, without network.\"\"\"

import sys

from proctor_challenge.packs.programs import run_scorer, score_codabench

run_scorer(score_codabench, *sys.argv[1:])
"""


def write_codabench(folder: Path, settings: ChallengeSettings, out: Path, image: str = "") -> PackSummary:
    """Writes the pack into a new folder: `bundle.zip` to upload, `image/` to build and push before, and `README.md`.

    `image` is the name under which the platform finds the scorer's image. Raises `InputError` for what Codabench can't
    do (phases that overlap or have no beginning), and without answers to check the pack with.
    """
    image = checked_image(image or f"proctor-{settings.benchmark}:{proctor.__version__}")
    phases = sources(folder, settings, "file")
    if not phases:
        raise InputError(folder, "phases", found="none that accepts files", expected="one: Codabench runs no images")
    dates = _dates(phases)
    with whole_folder(out) as draft, tempfile.TemporaryDirectory(prefix="proctor-pack-", dir=draft) as scratch:
        figures = _merged([phase.own_figures(phase.baseline(Path(scratch))[1]) for phase in phases])
        files = _pages(folder, settings, figures)
        tasks: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        program = {"score.py": _SCORE.encode(), "metadata.yaml": f"command: {COMMAND}\n".encode()}
        files["scoring_program.zip"] = zipped(program)
        for number, one in enumerate(phases):
            files |= _phase_files(one, Path(scratch))
            tasks.append(_task(number, one))
            shown.append({"index": number, **_phase(one), **dates[number], "tasks": [number]})
        competition = _competition(settings, image, phases)
        competition |= {"phases": shown, "tasks": tasks, "leaderboards": [_leaderboard(phases, figures)]}
        files["competition.yaml"] = yaml.safe_dump(competition, sort_keys=False, allow_unicode=True).encode()
        (draft / BUNDLE).write_bytes(zipped(files))
        notes = left_out(settings, phases, "left out, since it accepts images alone, which Codabench does not run.")
        for source in phases:
            notes += source.notes(gate="approve who may take part by hand.", ladder="Codabench knows no ladder.")
        _write_image(draft / "image")
        _write_readme(draft, settings, image, notes)
    return PackSummary(out, tuple(phase.phase.name for phase in phases), tuple(notes))


def _dates(phases: Sequence[PhaseSource]) -> list[dict[str, str]]:
    """The phases' dates as strings in UTC, since the platform reads YAML dates as midnight and drops time zones.

    Raises `InputError` for phases that the platform would refuse: those that overlap, without a beginning, or without
    an end before another phase.
    """
    found: list[dict[str, str]] = []
    before: datetime | None = None
    for number, one in enumerate(phases):
        location, phase = f"phase {one.phase.name}", one.phase
        following = phases[number + 1].phase if number + 1 < len(phases) else None
        if phase.opens is None or (following is not None and phase.closes is None):
            missing = "opens" if phase.opens is None else "closes"
            raise InputError(
                one.folder, f"{location}, {missing}", found="nothing", expected="a date: Codabench needs one"
            )
        if before is not None and phase.opens < before:
            expected = f"the end of the phase before it ({_utc(before)}): Codabench's do not overlap"
            raise InputError(one.folder, f"{location}, opens", found=_utc(phase.opens), expected=expected)
        dates = {"start": _utc(phase.opens)}
        if phase.closes is not None:
            touching = following is not None and following.opens == phase.closes
            dates["end"] = _utc(phase.closes - timedelta(seconds=1) if touching else phase.closes)
        before = phase.closes
        found.append(dates)
    return found


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _merged(all_figures: Sequence[list[PackFigure]]) -> list[PackFigure]:
    """The figures of all phases, each once, since the platform has one leaderboard for all of them."""
    found: dict[str, PackFigure] = {}
    for figure in chain.from_iterable(all_figures):
        found.setdefault(figure.key, figure)
    return list(found.values())


def _competition(settings: ChallengeSettings, image: str, phases: Sequence[PhaseSource]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "version": 2,
        "title": _title(settings),
        "description": f"{count_of(len(phases), 'phase')}, scored by Proctor {proctor.__version__}",
        "image": "logo.png",
        "terms": "terms.md",
        "docker_image": image,
        "registration_auto_approve": False,
        "make_programs_available": False,
        "make_input_data_available": False,
        "enable_detailed_results": False,
        "show_detailed_results_in_submission_panel": False,
        "show_detailed_results_in_leaderboard": False,
        "auto_run_submissions": True,
        "can_participants_make_submissions_public": False,
        "pages": [{"title": "Overview", "file": "overview.md"}, {"title": "Evaluation", "file": "evaluation.md"}],
    }
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", settings.contact):
        found["contact_email"] = settings.contact
    return found


def _title(settings: ChallengeSettings) -> str:
    return settings.title or settings.benchmark


def _phase(source: PhaseSource) -> dict[str, Any]:
    phase = source.phase
    return {
        "name": phase.title or phase.name,
        "description": f"{count_of(phase.quota.scored, 'result')} for each participant, each a zip archive of one file.",
        "max_submissions": phase.quota.scored,
        "max_submissions_per_day": phase.quota.per_day or phase.quota.scored,
        "execution_time_limit": _LIMIT_S,
        "auto_migrate_to_this_phase": False,
        "accepts_only_result_submissions": True,
        "hide_output": phase.hidden,
        "hide_prediction_output": phase.hidden,
        "hide_score_output": phase.hidden,
        "public_data": f"public_{phase.name}.zip",
        "starting_kit": f"starting_kit_{phase.name}.zip",
    }


def _task(number: int, source: PhaseSource) -> dict[str, Any]:
    name = source.phase.name
    return {
        "index": number,
        "name": source.phase.title or name,
        "description": f"Questions of the phase {name}",
        "scoring_program": "scoring_program.zip",
        "reference_data": f"reference_{name}.zip",
    }


def _leaderboard(phases: Sequence[PhaseSource], figures: list[PackFigure]) -> dict[str, Any]:
    digits = min(phase.phase.results.digits for phase in phases)
    columns = [
        {
            "title": one.title[:MAX_KEY],
            "key": one.key,
            "index": index,
            "sorting": "asc" if one.ascending else "desc",
            "precision": digits,
            "hidden": one.aside,
        }
        for index, one in enumerate(figures)
    ]
    hidden = any(phase.phase.results.boards == "organisers" for phase in phases)
    rule = "Force_Last" if phases[-1].phase.counts == "last" else "Force_Best"
    return {"title": "Results", "key": "main", "submission_rule": rule, "hidden": hidden, "columns": columns}


def _phase_files(source: PhaseSource, scratch: Path) -> dict[str, bytes]:
    phase = source.phase
    files = {}
    for name, part in (("reference", source), ("public", source.handed_out())):
        location = scratch / phase.name / name
        copy_part(part, location)
        files[f"{name}_{phase.name}.zip"] = _zipped_folder(location)
    kit = scratch / phase.name / "kit"
    write_starting_kit(source, kit)
    files[f"starting_kit_{phase.name}.zip"] = _zipped_folder(kit)
    return files


def _zipped_folder(folder: Path) -> bytes:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return zipped({file.relative_to(folder).as_posix(): file.read_bytes() for file in files})


def _pages(folder: Path, settings: ChallengeSettings, figures: list[PackFigure]) -> dict[str, bytes]:
    terms = input_text(folder / settings.terms, "the terms") if settings.terms else ""
    values = {"settings": settings, "title": _title(settings), "figures": figures, "version": proctor.__version__}
    return {
        "terms.md": (terms.strip() or "The terms of the platform hold.").encode() + b"\n",
        "overview.md": filled("overview.md.j2", **values).encode(),
        "evaluation.md": filled("evaluation.md.j2", **values).encode(),
        "logo.png": _logo(),
    }


def _logo() -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (256, 256), "#1f4e79")
    ImageDraw.Draw(picture).ellipse((64, 64, 192, 192), outline="white", width=16)
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _write_image(folder: Path) -> None:
    folder.mkdir()
    wheels = write_installation(folder)
    text = filled("codabench.Dockerfile.j2", wheels=wheels, python=python_image())
    (folder / "Dockerfile").write_text(text, encoding="utf-8")


def _write_readme(draft: Path, settings: ChallengeSettings, image: str, notes: Sequence[str]) -> None:
    text = filled("codabench.README.md.j2", title=_title(settings), image=image, notes=notes, bundle=BUNDLE)
    (draft / "README.md").write_text(text, encoding="utf-8")
