"""Benchmarks and their media: load them, check them, and remember in the store where their files are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from proctor.core import (
    BENCHMARKS,
    Benchmark,
    FilesOrigin,
    InputError,
    Offered,
    UnknownNameError,
    UsageError,
    admit_benchmark,
    benchmark_path,
    count_of,
    origin_of,
    reader_at,
    reader_of,
    reader_of_paths,
    refusal,
    with_columns,
)
from proctor.shell.option_values import size_in_bytes
from proctor.shell.stores import existing_store, name_in
from proctor.shell.systems import checked

if TYPE_CHECKING:
    from proctor.core import BenchmarkReader, Excerpt, Item
    from proctor.media import Excerpts, MediaLibrary
    from proctor.runs import Store

BLIND = "text-only"


def load(
    benchmark: str | Path,
    data: str | Path | None = None,
    media: str | Path | None = None,
    *,
    track: str = "",
    seed: int = 0,
    columns: Mapping[str, str | Sequence[str]] | None = None,
) -> Benchmark:
    """Load a benchmark's items from the folder `data` with its own files; `media` is the folder of its videos or
    images.

    For your own questions, `benchmark` is the path of a folder or file (CSV, JSON, JSON Lines, Excel, Parquet).
    `columns` maps fields to columns whose names differ. `Benchmark.reading` says how the questions were understood.

    Raises `InputError` that names the file and the location (with all faults of your own questions as notes), and
    `UnknownNameError` that lists the benchmarks.
    """
    folder, path = media_at(media), benchmark_path(benchmark) if data is None else None
    if path is not None:
        return _read(reader_at(path), FilesOrigin(path, columns=as_lists(columns)), folder, seed)
    reader = reader_of(str(benchmark), track)
    if data is None:
        raise UsageError(f"--data is missing. Give the folder with the files of {benchmark}: --data FOLDER")
    return _read(reader, FilesOrigin(Path(data), track, as_lists(columns)), folder, seed)


def is_study(benchmark: object) -> bool:
    """Whether the argument of `run` is a study file: an existing .yaml file that is no benchmark's name."""
    if not isinstance(benchmark, str | Path) or str(benchmark) in BENCHMARKS.names():
        return False
    path = Path(benchmark)
    return path.suffix in {".yaml", ".yml"} and path.is_file()


def _read(reader: BenchmarkReader, origin: FilesOrigin, media: Path | None, seed: int) -> Benchmark:
    reader = with_columns(reader, origin.columns)
    package = origin_of(reader)
    location = f"{origin.data} (read by {package})" if package else str(origin.data)

    def loading() -> object:
        try:
            return reader.load(origin.data, media, seed=seed)
        except ValidationError as error:  # of an item that a reader, perhaps another package's, did not check itself
            raise refusal(location, "", error) from error

    loaded = BENCHMARKS.make(reader.name, loading)
    if not isinstance(loaded, Benchmark):
        raise InputError(reader.name, found=f"{type(loaded).__name__} from load", expected="a Benchmark")
    if package and loaded.read_by != reader.name:
        raise InputError(
            location, found=f"a benchmark called {loaded.name!r}", expected=f"{reader.name!r}, as its reader"
        )
    return admitted(replace(loaded, origin=origin), location, reader.rubric_judge)


def admitted(benchmark: Benchmark, location: str = "", judge: str | None = None) -> Benchmark:
    """The benchmark, if it declares nothing that does not exist (see `admit_benchmark`)."""
    from proctor.media import CONDITIONS
    from proctor.metrics import code_scorers

    judges: list[str] = []
    if benchmark.judge or judge:
        from proctor.judges import JUDGES

        judges = JUDGES.names()
    metrics = [metric.name for scorer in code_scorers() for metric in scorer.metrics]
    if not {benchmark.headline, *(metric.name for metric in benchmark.metrics)} <= {*metrics}:
        from proctor.metrics import OVER_ITEMS, SCORERS

        metrics += [*OVER_ITEMS.names(), *SCORERS.names()]
    offered = Offered(CONDITIONS.names(), judges, metrics)
    admit_benchmark(benchmark, location or f"the benchmark {benchmark.name!r}", offered, judge)
    return benchmark


def as_lists(columns: Mapping[str, str | Sequence[str]] | None) -> dict[str, list[str]]:
    """Columns by field, each a list."""
    return {name: [one] if isinstance(one, str) else list(one) for name, one in (columns or {}).items()}


def loaded_as(benchmark: str | Path | Benchmark, given: Any) -> Benchmark:
    """The benchmark itself, or loaded from its files. Folders that are not given are those that the store remembers."""
    media, columns, seed = media_at(given.get("media"), given.get("cache")), given["columns"], given["seed"]
    if isinstance(benchmark, Benchmark):
        if given["data"] is not None:
            benchmark = replace(benchmark, origin=FilesOrigin(Path(given["data"]), given["track"], as_lists(columns)))
        return admitted(benchmark if media is None else replace(benchmark, media_root=media))
    name, path = str(benchmark), benchmark_path(benchmark) if given["data"] is None else None
    if path is None:
        opened = existing_store(given["store"])
        name = name if opened is None else name_in(opened, name)
        data, remembered, track = recalled(name, given["store"], given["data"], media, given["track"])
        if given["data"] is not None or name in BENCHMARKS.names():
            remembered = media_at(remembered, given.get("cache"))
            return load(name, data, remembered, track=track, seed=seed, columns=columns)
        path = Path(data)  # your own questions, by the name in the store
    known = remembered_at(given["store"], path)
    media = media or media_at(known_media(known, path), given.get("cache"))
    return load(path, media=media, seed=seed, columns=columns or known_columns(known))


def library_as(benchmark: Benchmark, given: Any) -> MediaLibrary:
    """The benchmark's media with the settings of the options (see `ShownOptions`)."""
    from proctor.media import MediaLibrary, MediaSettings

    settings = checked(
        MediaSettings,
        fps=given["fps"],
        max_frames=given["max_frames"],
        max_side=given["max_side"],
        overlay=given["overlay"],
    )
    size = given["cache_size"]
    return MediaLibrary(
        benchmark.media_root,
        settings,
        given["cache"],
        cache_bytes=size_in_bytes(size) if isinstance(size, str) else size,
        excerpts=excerpts_as(benchmark.excerpts, given["media_as"]),
    )


def need_media(benchmark: Benchmark, items: Sequence[Item], library: MediaLibrary, conditions: Sequence[str]) -> None:
    """Raises `InputError` if media are missing that the conditions show, with a note on how to get them."""
    from proctor.media import CONDITIONS, shown_location

    if not any(CONDITIONS.get(condition).sees for condition in conditions):
        return
    missing = library.missing(items)
    if not missing:
        return
    needed = {medium.source for item in items for medium in item.media}
    some = f"{', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}"
    error = InputError(
        "--media" if library.root is None else shown_location(library.root),
        found=f"{len(needed) - len(missing)} of {count_of(len(needed), 'media file')}, missing {some}",
        expected=f"all of them, or --condition {BLIND}",
    )
    if benchmark.origin is not None:
        reader = reader_of(benchmark.read_by) if benchmark.read_by in BENCHMARKS.names() else reader_of_paths()
        error.add_note(reader.media_help(benchmark.origin.data, missing))
    raise error


def media_at(location: str | Path | None, cache: str | Path | None = None) -> Path | None:
    """The folder of media at a path, or at the URL of a folder in object storage, whose files are fetched into the
    cache when they are needed. None for None. Raises `InputError` for a URL with credentials or a query."""
    from proctor.media import cache_folder, media_folder

    return None if location is None else media_folder(location, cache_folder(cache))


def _still_there(location: str) -> bool:
    """Whether a remembered folder of media can be used again."""
    return "://" in location or Path(location).is_dir()


def recalled(
    benchmark: str,
    store: Store | str | Path | None,
    data: str | Path | None = None,
    media: str | Path | None = None,
    track: str = "",
) -> tuple[str | Path, str | Path | None, str]:
    """A benchmark's own files, its media and its track: as given, else as the store remembers them from the last run or
    import.

    Raises `UnknownNameError` for a benchmark that is neither installed nor in the store, and `UsageError` if the files
    are not known, or no longer there.
    """
    if data is not None:
        return data, media, track
    opened = existing_store(store)
    stored = opened is not None and benchmark in opened.benchmark_names()
    if not stored and benchmark not in BENCHMARKS.names():
        names = ", ".join(opened.benchmark_names()) if opened is not None else ""
        where = f"; {opened.shown} has {names or 'none'}" if opened is not None else ""
        try:
            BENCHMARKS.get(benchmark)
        except UnknownNameError as error:
            raise UnknownNameError(f"{error}{where}") from None
    known = opened.card(benchmark).folders if opened is not None and stored else {}
    found = known.get("data")
    if found is None:
        raise UsageError(
            f"--data is missing. Give the folder with the files of {benchmark} (a store remembers it): --data {benchmark}"
        )
    if not Path(found).exists():
        raise UsageError(
            f"Nothing is at {found} any more, where the files of {benchmark} were. Give their folder: --data FOLDER"
        )
    remembered = known.get("media")
    if media is None and remembered is not None and _still_there(remembered):
        media = remembered
    return found, media, track or known.get("track", "")


def remembered_at(store: Store | str | Path | None, path: Path) -> Mapping[str, str]:
    """What a store remembers about the files at a path (see `BenchmarkCard.folders`)."""
    opened = existing_store(store)
    if opened is None:
        return {}
    cards = [opened.card(name).folders for name in opened.benchmark_names()]
    return next((card for card in cards if card.get("data") == str(path.resolve())), {})


def known_media(folders: Mapping[str, str], path: Path) -> str | None:
    """The folder of media that was given at the last run or import. None if it lies beside the questions, where it is
    looked for each time."""
    known = folders.get("media")
    if known is None or not _still_there(known):
        return None
    beside = path if path.is_dir() else path.parent
    return None if Path(known).is_relative_to(beside.resolve()) else known


def known_columns(folders: Mapping[str, str]) -> dict[str, list[str]]:
    """The columns that were given for fields at the last run or import."""
    found: dict[str, list[str]] = json.loads(folders.get("columns", "{}"))
    return found


def remember(store: Store, benchmark: Benchmark) -> None:
    """Store the locations of files and media, and the columns, for the next command. What is not known now keeps its
    value."""
    card, origin = store.card(benchmark.name), benchmark.origin
    kept = dict(card.folders)
    if origin is not None:
        kept["data"] = str(origin.data.resolve())
        kept |= {"track": origin.track} if origin.track else {}
        kept |= {"columns": json.dumps(origin.columns)} if origin.columns else {}
    if benchmark.media_root is not None:
        from proctor.media import location_of

        kept["media"] = location_of(benchmark.media_root)
    if kept != card.folders:
        store.change_card(benchmark.name, lambda card: card.model_copy(update={"folders": kept}))


def excerpts_as(known: Mapping[str, Excerpt], media_as: str | None) -> Excerpts:
    """How a benchmark's videos were cut from their sources. Raises `UsageError` for `media_as` if they were not."""
    from proctor.media import Excerpts, MediaAs

    if media_as is not None and not known:
        raise UsageError(f"--media-as {media_as} does not fit: these videos are no parts of others. Leave it out.")
    return Excerpts(known, None if media_as is None else MediaAs(media_as))
