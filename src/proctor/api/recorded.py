"""Bringing recorded answers into a store: `import_answers` with its async twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from proctor.api.folders import Folders, recalled, remember
from proctor.api.loop import wait_for
from proctor.api.running import loaded_from, skipped_baselines
from proctor.api.sources import Evaluation, check_options, open_store
from proctor.core import Benchmark, InputError, reader_of

if TYPE_CHECKING:
    from proctor.core import RecordedAnswers
    from proctor.runs import Run, Store


class ImportOptions(TypedDict, total=False):
    """How answers are read: the benchmark's `track` and `seed`, as they were asked; `answers_only` leaves people's
    ratings in the file alone."""

    track: str
    seed: int
    answers_only: bool


async def import_answers_async(
    benchmark: str | Benchmark,
    path: str | Path,
    *,
    name: str = "",
    condition: str = "",
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[ImportOptions],
) -> Evaluation:
    """The async twin of `import_answers`."""
    from proctor.media import CONDITIONS
    from proctor.metrics import code_scorers
    from proctor.runs import add_baselines
    from proctor.runs import import_answers as bring

    check_options("import_answers", dict(options), ImportOptions)
    track, answers_only = options.get("track", ""), options.get("answers_only", False)
    if condition:
        CONDITIONS.get(condition)
    folders = Folders(data, track=track)
    if isinstance(benchmark, str):
        folders = recalled(benchmark, folders, store)
    reader = reader_of(benchmark if isinstance(benchmark, str) else benchmark.name, folders.track)
    loaded = loaded_from(benchmark, folders.data, track=folders.track, seed=options.get("seed", 0))
    if reader.ratings:
        if name:
            raise InputError(None, "name", found=repr(name), expected="none: the file names its systems")
        found = reader.read_ratings(Path(path), loaded, answers_only=answers_only)
        several = await _several(open_store(store), loaded, found, condition or "video")
        remember(several.store, loaded.name, folders)
        return several
    if answers_only:
        raise InputError(None, "answers_only", found="True", expected=f"no: files of {loaded.name} hold no ratings")
    if not name:
        raise InputError(None, "name", found="none", expected="one: the file does not name its system")
    recorded = reader.read_recorded(Path(path), loaded)
    if condition and recorded.condition and condition != recorded.condition:
        expected = f"{recorded.condition}, as the files' names say"
        raise InputError(path, "--condition", found=condition, expected=expected)
    condition = condition or recorded.condition or "video"
    scorers, opened = code_scorers(loaded), open_store(store)
    made = await bring(opened, loaded, recorded, name=name, condition=condition, scorers=scorers)
    remember(opened, loaded.name, folders)
    await add_baselines(opened, loaded, scorers, seed=options.get("seed", 0))
    done = f"{len(recorded.answers)} answers and {len(recorded.votes)} votes as {name} / {condition} in {opened.shown}"
    notes = (*skipped_baselines(loaded), *recorded.notes)
    return Evaluation(opened, loaded.name, (made,), None, notes, (done,))


def import_answers(
    benchmark: str | Benchmark,
    path: str | Path,
    *,
    name: str = "",
    condition: str = "",
    data: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[ImportOptions],
) -> Evaluation:
    """Answers that were recorded elsewhere, in the benchmark's own format, kept as the system `name`; of a file that
    names its systems and holds people's ratings (MEDIQA-EVAL), all systems, and ratings as scores by `human:RATER`.

    `condition` is what the system had seen: as the files say, else `video`. Importing the same answers again changes
    nothing. Raises `InputError` with file and place for a file that can't be read. The command is `proctor import`.
    """
    return wait_for(
        lambda: import_answers_async(benchmark, path, name=name, condition=condition, data=data, store=store, **options)
    )


async def _several(
    store: Store, benchmark: Benchmark, recorded: Sequence[RecordedAnswers], condition: str
) -> Evaluation:
    from proctor.runs import import_systems

    runs: list[Run] = await import_systems(store, benchmark, recorded, condition=condition)
    notes = tuple(f"{one.system}: {line}" for one in recorded for line in one.notes)
    done = tuple(
        f"{len(one.answers)} answers with {len(one.scores)} ratings as {one.system} / {condition} in {store.shown}"
        for one in recorded
    )
    return Evaluation(store, benchmark.name, tuple(runs), None, notes, done)
