"""A challenge as phases of Grand Challenge: the evaluation method, each phase's ground truth, archive and settings, and
an example algorithm."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import proctor
from proctor.core import InputError, Item, VideoClip, count_of, whole_folder
from proctor.media import MediaLibrary, ShowsFiles, view
from proctor_challenge.containers import question_fields
from proctor_challenge.packs.parts import (
    PackSummary,
    PhaseSource,
    checked_image,
    copy_part,
    filled,
    left_out,
    python_image,
    sources,
    template_text,
    write_installation,
)
from proctor_challenge.packs.programs import IDS_FILE, PackFigure, PhaseSockets, sockets_of
from proctor_challenge.settings import ChallengeSettings

TRUTH = "ground_truth.tar.gz"
ENTRYPOINT = ("python3", "/opt/app/evaluate.py", "/input", "/output", "/opt/ml/input/data/ground_truth")
"""The command by which the platform starts the evaluation."""

IMAGE_FILE = "image.txt"

_SECRET = "pack.key"  # noqa: S105 - the name of a file
_EVALUATE = """\
\"\"\"The evaluation method: Proctor scores the answers, without network.\"\"\"

import sys

from proctor_challenge.packs.programs import evaluate_grand_challenge, run_scorer

run_scorer(evaluate_grand_challenge, *sys.argv[1:])
"""


def write_grand_challenge(folder: Path, settings: ChallengeSettings, out: Path, image: str = "") -> PackSummary:
    """Writes the pack into a new folder: `evaluation/`, `example_algorithm/`, `sockets.json`, `README.md`, and for each
    phase that accepts images `ground_truth.tar.gz`, `phase.json` and `upload_to_archive/`.

    `image` is the name of the evaluation's image. Raises `InputError` for questions that are not about one video each,
    and without answers to check the pack with.
    """
    image = checked_image(image or f"proctor-{settings.benchmark}-evaluation:{proctor.__version__}")
    phases = sources(folder, settings, "image")
    if not phases:
        raise InputError(folder, "phases", found="none that accepts images", expected="one: algorithms are images")
    sockets = sockets_of(settings.benchmark)
    notes = left_out(settings, phases, "left out, since it accepts files alone: this pack is for algorithms.")
    with whole_folder(out) as draft:
        _write_evaluation(draft / "evaluation", image)
        _write_algorithm(draft / "example_algorithm")
        _write_json(draft / "sockets.json", [asdict(socket) for socket in sockets])
        for phase in phases:
            notes += _write_phase(phase, sockets, draft / phase.phase.name)
        values = {"title": settings.title or settings.benchmark, "image": image, "notes": notes, "sockets": sockets}
        (draft / "README.md").write_text(filled("grand_challenge.README.md.j2", **values), encoding="utf-8")
    return PackSummary(out, tuple(phase.phase.name for phase in phases), tuple(notes))


def case_ids(source: PhaseSource) -> dict[str, Item]:
    """The questions by case id, in the order of the ids, which are keyed hashes and reveal nothing."""
    key = source.sealed.secret(_SECRET)
    names = {f"{source.phase.name}/{item.id}": item for item in source.benchmark.counted()}
    ids = {hmac.new(key, name.encode(), hashlib.sha256).hexdigest()[:16]: item for name, item in names.items()}
    return dict(sorted(ids.items()))


def _write_evaluation(folder: Path, image: str) -> None:
    folder.mkdir()
    wheels = write_installation(folder)
    (folder / "evaluate.py").write_text(_EVALUATE, encoding="utf-8")
    (folder / IMAGE_FILE).write_text(f"{image}\n", encoding="utf-8")
    values = {"wheels": wheels, "python": python_image(), "entrypoint": json.dumps(ENTRYPOINT)}
    (folder / "Dockerfile").write_text(filled("grand_challenge.Dockerfile.j2", **values), encoding="utf-8")


def _write_algorithm(folder: Path) -> None:
    folder.mkdir()
    for name in ("algorithm", "start"):
        (folder / f"{name}.py").write_text(template_text(f"{name}.txt"), encoding="utf-8")
    (folder / "Dockerfile").write_text(filled("algorithm.Dockerfile.j2", python=python_image()), encoding="utf-8")


def _write_phase(source: PhaseSource, sockets: PhaseSockets, folder: Path) -> list[str]:
    folder.mkdir()
    cases = case_ids(source)
    _check_items(source)
    truth = folder / "truth"
    copy_part(source, truth)
    _write_json(truth / IDS_FILE, {case: item.id for case, item in cases.items()})
    (folder / TRUTH).write_bytes(_tarball(truth))
    shutil.rmtree(truth)
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        figures = source.own_figures(source.baseline(Path(scratch))[1])
    _write_json(folder / "phase.json", _settings(source, figures))
    upload = folder / "upload_to_archive"
    upload.mkdir()
    text = filled("upload.py.j2", question=sockets.question, video=sockets.video)
    (upload / "upload.py").write_text(text, encoding="utf-8")
    missing = asyncio.run(_write_cases(source, cases, sockets, upload / "cases"))
    no_video = f"{source.phase.name}: no video for {count_of(missing, 'case')}: its files are not there."
    notes = source.notes(gate="open the phase to teams by hand.", ladder="the platform knows no ladder.")
    return [*([no_video] if missing else []), *notes]


def _check_items(source: PhaseSource) -> None:
    for item in source.benchmark.counted():
        if len(item.media) != 1 or not isinstance(item.media[0], VideoClip):
            found = f"media ({len(item.media)}) that are not one video" if item.media else "no media"
            location = f"phase {source.phase.name}, question {item.id}"
            expected = "one video: a phase's sockets are the same for all"
            raise InputError(source.folder, location, found=found, expected=expected)


async def _write_cases(source: PhaseSource, cases: dict[str, Item], sockets: PhaseSockets, folder: Path) -> int:
    """Writes a folder for each case; returns the number of cases without a video."""
    library = MediaLibrary(source.benchmark.media_root)
    missing = 0
    for case, item in cases.items():
        location = folder / case
        location.mkdir(parents=True)
        _write_json(
            location / sockets.question.relative_path, question_fields(case, item, source.phase.budget.question_s)
        )
        if library.missing([item]):
            missing += 1
            continue
        shown = view(item, source.phase.condition, library)
        clips = await shown.files() if isinstance(shown, ShowsFiles) else []
        for clip in clips:
            (location / sockets.video.relative_path).write_bytes(clip.mp4)
    return missing


def _settings(source: PhaseSource, figures: Sequence[PackFigure]) -> dict[str, Any]:
    """The settings of the phase, in the platform's terms."""
    ranked = [figure for figure in figures if not figure.aside]
    columns = [
        {
            "title": pack_figure.title,
            "path": f"aggregates.{pack_figure.key}",
            "order": "asc" if pack_figure.ascending else "desc",
            "exclude_from_ranking": True,
        }
        for pack_figure in ranked[1:]
    ]
    phase = source.phase
    return {
        "title": phase.title or phase.name,
        "submission_kind": "Algorithm",
        "score_title": ranked[0].title,
        "score_jsonpath": f"aggregates.{ranked[0].key}",
        "score_default_sort": "asc" if ranked[0].ascending else "desc",
        "score_decimal_places": phase.results.digits,
        "extra_results_columns": columns,
        "result_display_choice": "Only display each users most recent result"
        if phase.counts == "last"
        else "Only display each users best result",
        "display_all_metrics": False,
        "auto_publish_new_results": phase.results.boards != "organisers",
        "submissions_open_at": None if phase.opens is None else phase.opens.isoformat(),
        "submissions_close_at": None if phase.closes is None else phase.closes.isoformat(),
        "submissions_limit_per_user_per_period": phase.quota.scored,
    }


def _tarball(folder: Path) -> bytes:
    """A folder's files as a tar archive, readable for all."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(file.relative_to(folder).as_posix())
            info.size, info.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                archive.addfile(info, content)
    return packed.getvalue()


def _write_json(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
