"""`about.json`: what the files of a benchmark of one's own, as a project exports them, say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core.benchmark_parts import PathReader, reader_of_paths, with_columns
from proctor.core.errors import InputError, ProctorError
from proctor.core.files import read_json, read_model
from proctor.core.formatting import count_of
from proctor.core.protocols import Benchmark, BenchmarkReader
from proctor.core.registry import BENCHMARKS, PluginReport, reader_of

ABOUT = "about.json"
VIDEOS = "videos"
"""The folder of whole videos beside exported questions."""


class AboutFiles(BaseModel):
    """The content of `about.json`. `name` is the benchmark's own name in stores and commands, `reader` the installed
    benchmark whose form the files have, on its `track`; `origin` says where the files come from, `seed` is that of the
    draws in them. Other fields, which builders add for the record, are ignored.

    >>> AboutFiles(name="abdomen", reader="rexsonovqa", licence="CC0").title
    ''
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str = Field(default="", pattern=r"^[\w.-]{0,80}$")
    reader: str = Field(default="", max_length=80)
    track: str = Field(default="", max_length=80)
    title: str = Field(default="", max_length=200)
    licence: str = Field(default="", max_length=2000)
    origin: str = Field(default="", max_length=2000)
    simulated: bool = False
    seed: int | None = None


def read_about(data: Path) -> AboutFiles | None:
    """The content of `about.json` in a folder; None without one, as in the benchmark's own release. Raises `InputError`
    for an invalid one, and for the name of an installed benchmark.

    >>> print(read_about(Path("nowhere")))
    None
    """
    file = data / ABOUT
    if not file.is_file():
        return None
    about = read_model(file, AboutFiles)
    if about.name in BENCHMARKS.names():
        found = f"{about.name!r}, the name of an installed benchmark"
        raise InputError(file, "field 'name'", found=found, expected="a name of its own")
    return about


def own_benchmark(benchmark: Benchmark, about: AboutFiles | None, data: Path) -> Benchmark:
    """The benchmark of files in `data` under the name and title that they state, without figures that were published for
    other questions. Its videos are those beside the questions unless others were given. Unchanged without `about`.

    Reports show the licence and the origin among the notes.

    >>> from proctor.core import ACCURACY
    >>> read = Benchmark("rexsonovqa", "ReXSonoVQA", (), (ACCURACY,), "accuracy")
    >>> own = own_benchmark(read, AboutFiles(name="abdomen", title="Abdomen", licence="CC0"), Path("nowhere"))
    >>> own.name, own.read_by, own.title, own.notes
    ('abdomen', 'rexsonovqa', 'Abdomen', ('Licence: CC0',))
    """
    if about is None:
        return benchmark
    notes = [f"Licence: {about.licence}"] if about.licence else []
    notes += [about.origin] if about.origin else []
    beside = data / VIDEOS
    return replace(
        benchmark,
        name=about.name or benchmark.name,
        reader=benchmark.name if about.name else "",
        title=about.title or benchmark.title,
        simulated=about.simulated,
        published=None,
        notes=(*notes, *benchmark.notes),
        media_root=beside if benchmark.media_root is None and beside.is_dir() else benchmark.media_root,
    )


def reader_at(path: Path) -> BenchmarkReader:
    """The reader of the files at a path: the one that their `about.json` names, else that of questions at a path. Raises
    `InputError` for an invalid `about.json`, and `UnknownNameError` for a reader that is not installed.

    >>> reader_at(Path("my-questions.csv")).name
    'own-questions'
    """
    if _names_reader(path):
        about = read_about(path)
        if about is not None and about.reader:
            return reader_of(about.reader, about.track)
    return reader_of_paths()


def check_path(
    path: Path,
    media: Path | None,
    out: Path | None,
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    every: bool = False,
) -> PluginReport:
    """Checks the files at a path: questions of one's own as `PathReader.check` does, an export of a project by loading
    it. Raises `InputError` if nothing is there, and for an export that can't be loaded.

    >>> check_path(Path("nowhere"), None, None)
    Traceback (most recent call last):
    proctor.core.errors.InputError: nowhere: found nothing there, expected a folder or a file with questions
    """
    reader = with_columns(reader_at(path), columns)
    if isinstance(reader, PathReader):
        return reader.check(path, media, out, every=every)
    loaded = reader.load(path, media)
    items, groups = len(loaded.items), len({item.group for item in loaded.items})
    said = f"{loaded.name}: {count_of(items, 'question')} in {count_of(groups, 'group')}, no faults"
    found: dict[str, JsonValue] = {"items": items, "groups": groups, "faults": [], "notes": [*loaded.notes]}
    return PluginReport(found, (said,), loaded.notes)


def _names_reader(path: Path) -> bool:
    """Whether `about.json` there is one that names a reader; people may have other files of that name."""
    file = path / ABOUT
    if not path.is_dir() or not file.is_file():
        return False
    try:
        content = read_json(file, ABOUT)
    except ProctorError:
        return False
    return isinstance(content, dict) and "reader" in content
