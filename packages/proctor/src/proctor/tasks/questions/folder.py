"""The folder of a benchmark of one's own: `benchmark.yaml`, and which files hold the questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, JsonValue, ValidationError

from proctor.core import (
    SHEET_SUFFIXES,
    Excerpt,
    FailedPolicy,
    FrozenModel,
    InputError,
    TableFault,
    expected_words,
    input_text,
    natural,
    near_path,
)
from proctor.core.formats import AnswerFormat

NAME = "benchmark.yaml"
_MOST_CHARS = 1_000_000


class Settings(FrozenModel):
    """What `benchmark.yaml` may say; every field has a default."""

    name: str = Field(default="", pattern=r"^[\w.-]{0,80}$", description="its name in stores and commands")
    title: str = Field(default="", max_length=200, description="its name for people")
    licence: str = Field(default="", description="under which the questions may be used")
    questions: str = Field(default="", description="the file with the questions, where there are several")
    sheet: str = Field(default="", description="the sheet of a workbook")
    split: str = Field(default="", description="the split of a Hugging Face dataset")
    columns: dict[str, str | list[str]] = Field(default={}, description="field: the column that holds it")
    format: str = Field(default="", description="the answer format of all questions; else it is guessed for each")
    formats: dict[str, AnswerFormat] = Field(
        default={}, description="formats with options, by a name for the column format"
    )
    tolerances: dict[str, float] = Field(
        default={}, description="by format how far off an answer may be: timestamps: 2"
    )
    shuffle_options: bool = Field(
        default=False, description="whether the options of choices are shuffled, once for all systems, by the seed"
    )
    prompt: str = Field(default="", description="the prompt for models, a template (.j2) in this folder")
    judge: str = Field(
        default="", description="the judge that scores free text where none is named (criteria, where there are some)"
    )
    headline: str = Field(default="accuracy", description="the metric that ranks")
    facets: list[str] | None = Field(default=None, description="the columns that results are split by")
    buckets: list[str] = Field(default=[], description="the facets whose values make the buckets of a ranking")
    only: dict[str, JsonValue] = Field(default={}, description="facets whose value a question must have to count")
    relevance: str = Field(default="", description="the facet of the questions that a second ranking is made of")
    failed: FailedPolicy | None = Field(
        default=None, description="what counts where a run has no score: wrong, or exclude; else results show both ends"
    )
    conditions: list[str] = Field(default=["video", "text-only"], min_length=1, description="what systems may see")
    window: tuple[float, Annotated[float, Field(gt=0)]] | None = Field(
        default=None, description="centre and width of the window of DICOM and NIfTI files that name none: [40, 400]"
    )
    audio: bool = Field(default=False, description="whether the sound of videos belongs to the questions")
    budget_s: float | None = Field(default=None, gt=0, description="seconds of model time for a question")
    excerpts: dict[str, Excerpt] = Field(
        default={}, description="of which part of a longer video (start, end, url) a video was made"
    )
    seeds: dict[str, int] = Field(default={}, description="the seeds of draws that were made for these questions")
    simulated: bool = Field(default=False, description="whether the questions are made up; shown beside the name")
    exact: bool = Field(
        default=False, description="every cell stands as a program wrote it (`proctor export`): nothing is guessed"
    )
    notes: list[str] = Field(default=[], description="what readers of the numbers should know")


def read_settings(file: Path) -> tuple[Settings, list[TableFault]]:
    """The settings in a file, and its faults; the defaults without a file."""
    if not file.exists():
        return Settings(), []
    try:
        content = _parsed(input_text(file, "a YAML file", encoding="utf-8-sig"))
    except InputError as error:
        return Settings(), [
            TableFault(0, "", str(error).removeprefix(f"{file}: ").removeprefix("found "), "YAML in UTF-8")
        ]
    if isinstance(content, TableFault):
        return Settings(), [content]
    try:
        return Settings.model_validate(content), []
    except ValidationError as error:
        return Settings(), [_fault(one) for one in error.errors(include_url=False)]


def _parsed(text: str) -> dict[str, Any] | TableFault:
    """The file's object, or a fault. Aliases are faults, since they can make a small file expand."""
    if len(text) > _MOST_CHARS:
        return TableFault(0, "", f"{len(text):,} characters", f"at most {_MOST_CHARS:,}")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            return TableFault(0, "", "an alias (*name)", "each value where it belongs")
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        return TableFault(
            0 if mark is None else mark.line + 1, "", str(getattr(error, "problem", "")) or "broken YAML", "YAML"
        )
    if content is None:
        return {}
    return (
        content if isinstance(content, dict) else TableFault(0, "", f"a {type(content).__name__}", "fields with values")
    )


def _fault(problem: Any) -> TableFault:
    location = ".".join(str(part) for part in problem["loc"] if isinstance(part, int) or "[" not in part)
    if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
        return TableFault(0, location, "a field that is not known", f"one of {', '.join(Settings.model_fields)}")
    found = (
        problem["input"] if isinstance(problem["input"], str | int | float | bool) else type(problem["input"]).__name__
    )
    return TableFault(0, location, repr(found)[:60], expected_words(problem))


MEDIA = "media"
"""The usual folder of media beside the questions."""

_FIRST = ("test", "validation", "valid", "val", "dev", "train")
_SHARD = re.compile(r"(?P<split>[a-z]+)(?:-\d{5}-of-\d{5})?(?:-[0-9a-f]{16})?\.(?:parquet|arrow)")
_USUAL = ("questions", "metadata")  # the second is Hugging Face's name beside a folder of images


@dataclass
class Layout:
    """The folder, its files with questions, its settings, notes on the choice of files, and faults by file."""

    path: Path
    folder: Path
    files: list[Path] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    notes: list[str] = field(default_factory=list)
    faults: list[tuple[Path, TableFault]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The benchmark's name: that in the settings, else that of the file or folder."""
        if self.settings.name:
            return self.settings.name
        whole = self.path.resolve()
        stem = whole.name if whole.is_dir() else whole.stem
        stem = whole.parent.name if stem in _USUAL else stem
        return re.sub(r"[^\w.]+", "-", stem).strip("-.")[:80] or "questions"

    @property
    def name_line(self) -> str:
        """A note on the name, and on what changes it."""
        if self.settings.name:
            return f"Name: {self.name} (from {NAME})"
        whole = self.path.resolve()
        own = whole.is_dir() or whole.stem in _USUAL
        return f"Name: {self.name} (that of {'the folder' if own else 'the file'}; `name:` in {NAME} changes it)"


def find_layout(path: Path) -> Layout:
    """The files with questions at a path, and their settings. Raises `InputError` if nothing is there."""
    if not path.exists():
        expected = f"a folder or a file with questions{near_path(path)}"
        raise InputError(path, found="nothing there", expected=expected)
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
            fault = TableFault(0, "questions", repr(layout.settings.questions), "a file in this folder")
            layout.faults.append((beside, fault))
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
    """The file "questions", else the shards of a dataset, else the only table; otherwise none, with a fault."""
    tables = sorted(
        (
            path
            for path in layout.folder.iterdir()
            if path.suffix.lower() in SHEET_SUFFIXES and not path.name.startswith((".", "~$"))
        ),
        key=lambda path: natural(path.name),
    )
    for stem in _USUAL:
        named = [table for table in tables if table.stem.lower() == stem]
        if len(named) == 1:
            return named
        if named:
            tables = named
            break
    shards = _shards(layout)
    if shards:
        return shards
    plain = [table for table in tables if table.name not in {"dataset_info.json", "state.json", "dataset_dict.json"}]
    if len(plain) == 1:
        return plain
    found = f"{len(plain)} tables ({', '.join(path.name for path in plain[:5])})" if plain else "no table of questions"
    expected = f"one, called questions ({', '.join(SHEET_SUFFIXES)}), or `questions: FILE` in {NAME}"
    layout.faults.append((layout.folder, TableFault(0, "", found, expected)))
    return []


def _shards(layout: Layout) -> list[Path]:
    """The files of one split of a Hugging Face dataset: from its repository (`data/test-00000-of-00001.parquet`) or
    from `save_to_disk` (`test/data-00000-of-00001.arrow`)."""
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
