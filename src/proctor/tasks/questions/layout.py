"""Where the questions of a benchmark lie: one file, a folder with one, or a Hugging Face dataset on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proctor.core import SHEET_SUFFIXES, InputError, TableFault, natural
from proctor.tasks.questions.settings import NAME, Settings, read_settings

MEDIA = "media"
"""The folder of the media beside the questions, where there is one."""

_FIRST = ("test", "validation", "valid", "val", "dev", "train")
_SHARD = re.compile(r"(?P<split>[a-z]+)(?:-\d{5}-of-\d{5})?(?:-[0-9a-f]{16})?\.(?:parquet|arrow)")
_USUAL = ("questions", "metadata")  # the second is Hugging Face's name beside a folder of pictures


@dataclass
class Layout:
    """The folder, the files with questions, the settings beside them; notes on what was chosen, and faults by file."""

    path: Path
    folder: Path
    files: list[Path] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    notes: list[str] = field(default_factory=list)
    faults: list[tuple[Path, TableFault]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The benchmark's name: as its settings say, else that of the file or the folder."""
        if self.settings.name:
            return self.settings.name
        whole = self.path.resolve()
        stem = whole.name if whole.is_dir() else whole.stem
        stem = whole.parent.name if stem in _USUAL else stem
        return re.sub(r"[^\w.]+", "-", stem).strip("-.")[:80] or "questions"


def find_layout(path: Path) -> Layout:
    """What lies at a path. Raises `InputError` where there is nothing at all."""
    if not path.exists():
        raise InputError(path, found="nothing there", expected="a folder or a file with questions")
    layout = Layout(path, path if path.is_dir() else path.parent)
    beside = layout.folder / NAME
    layout.settings, faults = read_settings(beside)
    layout.faults += [(beside, fault) for fault in faults]
    if path.is_file():
        layout.files = [path]
        return layout
    if layout.settings.questions:
        named = layout.folder / layout.settings.questions
        if _inside(layout.folder, named):
            layout.files = [named]
        else:
            layout.faults.append(
                (beside, TableFault(0, "questions", repr(layout.settings.questions), "a file in this folder"))
            )
        return layout
    layout.files = _chosen(layout)
    outside = [file for file in layout.files if not _inside(layout.folder, file)]
    layout.faults += [
        (file, TableFault(0, "", "a link that leads out of the folder", "a file in it")) for file in outside
    ]
    layout.files = [file for file in layout.files if file not in outside]
    return layout


def _inside(folder: Path, file: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve())


def _chosen(layout: Layout) -> list[Path]:
    """The file "questions", else the only table, else the shards of a dataset; where it can't be said, a fault."""
    tables = sorted(
        (
            one
            for one in layout.folder.iterdir()
            if one.suffix.lower() in SHEET_SUFFIXES and not one.name.startswith((".", "~$"))
        ),
        key=lambda one: natural(one.name),
    )
    for stem in _USUAL:
        named = [one for one in tables if one.stem.lower() == stem]
        if len(named) == 1:
            return named
        if named:
            tables = named
            break
    shards = _shards(layout)
    if shards:
        return shards
    plain = [one for one in tables if one.name not in {"dataset_info.json", "state.json", "dataset_dict.json"}]
    if len(plain) == 1:
        return plain
    found = f"{len(plain)} tables ({', '.join(one.name for one in plain[:5])})" if plain else "no table of questions"
    expected = f"one, called questions ({', '.join(SHEET_SUFFIXES)}), or `questions: FILE` in {NAME}"
    layout.faults.append((layout.folder, TableFault(0, "", found, expected)))
    return []


def _shards(layout: Layout) -> list[Path]:
    """The files of one split of a Hugging Face dataset: of its repository (`data/test-00000-of-00001.parquet`), or as
    `save_to_disk` writes it (`test/data-00000-of-00001.arrow`)."""
    splits: dict[str, list[Path]] = {}
    for file in _files(layout.folder, ("*.parquet", "data/*.parquet", "*/*.parquet", "*.arrow", "*/*.arrow")):
        hit = _SHARD.fullmatch(file.name)
        below = file.parent.name if file.parent != layout.folder else ""
        split = hit["split"] if hit is not None and hit["split"] != "data" else below
        if hit is not None:
            splits.setdefault(split or "train", []).append(file)
    if not splits:
        return []
    wanted = layout.settings.split
    if wanted and wanted not in splits:
        fault = TableFault(0, "split", repr(wanted), f"one of {', '.join(splits)}")
        layout.faults.append((layout.folder / NAME, fault))
        return []
    chosen = wanted or next((one for one in _FIRST if one in splits), min(splits))
    others = [one for one in splits if one != chosen]
    also = f" (also there: {', '.join(others)}; `split: NAME` in {NAME})" if others else ""
    layout.notes.append(f"Split: {chosen}{also}")
    return splits[chosen]


def _files(folder: Path, patterns: Iterable[str]) -> Sequence[Path]:
    found = {file: None for pattern in patterns for file in sorted(folder.glob(pattern))}
    return [file for file in found if not file.name.startswith(("cache-", "."))]
