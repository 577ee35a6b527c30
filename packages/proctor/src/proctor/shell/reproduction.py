"""Reproduce what systems were shown (`reproduce`), and published figures (`verify`)."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from proctor.core import (
    BENCHMARKS,
    PUBLISHED_FIGURES,
    InputError,
    UsageError,
    Verified,
    VerifiedFigure,
    count_of,
    reader_at,
    reader_of,
)
from proctor.reports import FrameLike, Record
from proctor.shell.benchmarks import excerpts_as, media_at, recalled
from proctor.shell.options import ReproduceOptions, filled, listed
from proctor.shell.stores import Stored, StoredRuns, stored, wait_for

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.media import MediaLibrary, MediaSettings
    from proctor.runs import ReproducedAnswer, Reproducer, Store

_LISTED = 20

_CACHE = 2 * 10**9  # of frames kept while it works, in bytes

_COUNTS = ("same", "different", "unrecorded", "unreadable")


@dataclass(frozen=True, repr=False)
class ReproductionTable(FrameLike):
    """A row for each answer. `state` is same, different, unrecorded (the store has no record) or unreadable (media are
    missing or broken); `reason` says why; `media` are the files that have changed."""

    data: tuple[ReproducedAnswer, ...]

    @property
    def rows(self) -> list[Record]:
        """The fields of `proctor.runs.ReproducedAnswer`."""
        return [answer.to_json() for answer in self.data]

    @property
    def ok(self) -> bool:
        """Whether there are records and all pictures are the same."""
        return {answer.state.value for answer in self.data} == {"same"}

    @property
    def notes(self) -> tuple[str, ...]:
        """Files that changed without changing the pictures, and answers without a record."""
        same = sorted({name for answer in self.data if answer.state == "same" for name in answer.media})
        without = sum(answer.state == "unrecorded" for answer in self.data)
        lines = [f"Other files than before, with the same pictures: {', '.join(same[:_LISTED])}."] if same else []
        unknown = (
            f"{count_of(without, 'answer')} without a record of what was shown: imported, or from before it was kept."
        )
        lines += [unknown] if without else []
        return tuple(lines)

    @property
    def tables(self) -> Sequence[Table]:
        """The number of answers of each run by state, and the first answers that differ."""
        from proctor.reports import records_table

        counts: dict[tuple[str, str], Counter[str]] = {}
        for answer in self.data:
            counts.setdefault((answer.system, answer.condition), Counter())[answer.state.value] += 1
        runs = [
            {
                "system": system,
                "condition": condition,
                "answers": found.total(),
                **{name: found[name] for name in _COUNTS},
            }
            for (system, condition), found in counts.items()
        ]
        shown = [records_table("What was shown, made again", runs)]
        wrong = [answer for answer in self.data if answer.state in {"different", "unreadable"}]
        if wrong:
            repeated = any(answer.repetition for answer in self.data)
            named = [
                {
                    "item": answer.item,
                    "system": answer.system,
                    "condition": answer.condition,
                    **({"repetition": answer.repetition} if repeated else {}),
                    "found": _reason(answer),
                }
                for answer in wrong[:_LISTED]
            ]
            more = f", the first {_LISTED} of {len(wrong)}" if len(wrong) > _LISTED else ""
            shown.append(records_table(f"Not the same{more}", named))
        return shown


def reproduce(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[ReproduceOptions]
) -> ReproductionTable:
    """Reproduce what systems were shown from the media files, and compare it with the record in the store: the time and
    the SHA-256 of every picture, as the system got it.

    Cached frames are not used. Raises `InputError` if the media folder is not known, and for an unknown item, system or
    condition. The command is `proctor reproduce`.
    """
    from proctor.runs import chosen_runs

    given = filled("reproduce", ReproduceOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    items = tuple(listed(given["items"]))
    with _reproducer(where, given) as reproducer:
        how: Any = {"limit": given["limit"], "progress": given["on_change"]}
        found = wait_for(lambda: reproducer.answers(runs, items, **how))
    return ReproductionTable(tuple(found))


def write_shown(
    source: StoredRuns | Store | str | Path | None,
    item: str,
    folder: str | Path,
    benchmark: str = "",
    **options: Unpack[ReproduceOptions],
) -> list[str]:
    """Reproduce the pictures that systems were shown for an item, and write them into SYSTEM/CONDITION below `folder`
    (those of a later repetition into a folder of its own in there). Returns a sentence for each answer: the number of pictures, and whether they are those of the record.

    Raises `InputError` as `reproduce` does, and if the folder can't be written.
    """
    from proctor.results import given_answer, item_history

    given = filled("write_shown", ReproduceOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    history = item_history(where.store, where.benchmark, item, where.systems, where.conditions)
    lines = []
    with _reproducer(where, given) as reproducer:
        each = [
            given_answer(where.store, one.run, item, number, keys=())
            for one in history.given
            for number in where.store.repetitions(one.run)
        ]
        for run, answer in [(one.run, one.answer) for one in each if one.answer is not None]:
            made = wait_for(lambda run=run, answer=answer: reproducer.remade(run, history.item, answer))  # type: ignore[misc]
            again = f"repetition {answer.repetition}" if answer.repetition else ""
            name = " / ".join(filter(None, (run.system, run.condition, again)))
            if not made:
                lines.append(f"{name}: no record of what was shown")
                continue
            below = Path(folder) / _safe(run.system) / _safe(run.condition) / again.replace(" ", "_")
            many = len(made) > 1
            for number, request in enumerate(made, start=1):
                _write(below / f"request_{number}" if many else below, request.pictures)
            differing = next((found for remake in made if (found := remake.then.difference(remake.now))), "")
            played = sum(len(remake.pictures) for remake in made if remake.then.asked_as == "sounds")
            count = sum(len(remake.pictures) for remake in made) - played
            heard = f" and {count_of(played, 'sound')}" if played else ""
            said = f"not those that were shown: {differing}" if differing else "the same as were shown"
            lines.append(f"{name}: {count_of(count, 'picture')}{heard} in {below}, {said}")
    return lines


@contextmanager
def _reproducer(where: Stored, given: ReproduceOptions) -> Iterator[Reproducer]:
    """A reproducer with an empty cache, so that frames cached by runs are not used."""
    from proctor.media import MediaLibrary
    from proctor.runs import Reproducer

    root, card = _media_root(where, given), where.store.card(where.benchmark)
    excerpts = excerpts_as(card.excerpts, given["media_as"])
    with tempfile.TemporaryDirectory(prefix="proctor-reproduce-") as cache:
        made: dict[MediaSettings, MediaLibrary] = {}

        def library(settings: MediaSettings) -> MediaLibrary:
            if settings not in made:
                made[settings] = MediaLibrary(root, settings, Path(cache), cache_bytes=_CACHE, excerpts=excerpts)
            return made[settings]

        yield Reproducer(where.store, where.benchmark, library)


def _media_root(where: Stored, given: ReproduceOptions) -> Path | None:
    """The folder of the media: the given one, else the one that the store remembers, else that of the benchmark."""
    if given["media"] is not None:
        root = media_at(given["media"])
        if root is None or not root.is_dir():
            raise InputError(root, found="no such folder", expected="the folder of the benchmark's media")
        return root
    card = where.store.card(where.benchmark)
    if "media" in card.folders:
        return media_at(card.folders["media"])
    try:
        data, media, track = recalled(where.benchmark, where.store, given["data"], None, given["track"])
        reader = reader_of(card.name, track) if card.name in BENCHMARKS.names() else reader_at(Path(data))
        return reader.load(Path(data), media_at(media)).media_root
    except UsageError as error:
        raise UsageError(
            "--media is missing. Give the folder of the benchmark's media (a store remembers it): --media FOLDER"
        ) from error


def _write(folder: Path, pictures: Sequence[tuple[str, bytes]]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in pictures:
            (folder / name).write_bytes(content)
    except OSError as error:
        raise InputError(folder, found=error.strerror or "", expected="a folder to write to") from error


def _safe(name: str) -> str:
    """A name that is safe for a folder: special characters become "_"."""
    kept = "".join(one if one.isalnum() or one in "-_. " else "_" for one in name).strip(". ")
    return kept[:80] or "_"


def _reason(answer: ReproducedAnswer) -> str:
    changed = f" ({', '.join(answer.media)} is another file now)" if answer.media else ""
    return f"{answer.reason}{changed}"


@dataclass(frozen=True, repr=False)
class VerificationTable(FrameLike):
    """A row for each published figure: `published`, `ours` (None if its recorded answers are missing), `difference`
    (ours minus published), `state` (see `proctor.core.Verified`) and the reason of an explained difference. `missing`
    are the benchmarks whose recorded answers were not found."""

    figures: tuple[tuple[str, VerifiedFigure], ...]
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Record]:
        """One row for each figure, by benchmark."""
        return [
            {
                "benchmark": name,
                "figure": one.name,
                "source": one.source,
                "published": one.published,
                "ours": one.ours,
                "difference": None if one.ours is None else one.ours - one.published,
                "state": one.state.value,
                "reason": one.explained if one.state is Verified.EXPLAINED else "",
            }
            for name, one in self.figures
        ]

    @property
    def ok(self) -> bool:
        """Whether figures were compared, and none is different."""
        states = {one.state for _, one in self.figures}
        return Verified.SAME in states and Verified.DIFFERENT not in states

    @property
    def title(self) -> str:
        """The title of the table."""
        return "Published figures, computed again from recorded answers"

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be compared."""
        return tuple(f"{name}: no folder holds {_files(name)}." for name in self.missing)

    @property
    def tables(self) -> Sequence[Table]:
        """The number of figures of each benchmark by state, and those that differ."""
        from proctor.reports import records_table

        counts: dict[str, Counter[Verified]] = {}
        for name, one in self.figures:
            counts.setdefault(name, Counter())[one.state] += 1
        summary = [
            {"benchmark": name, "figures": found.total(), **{state.value: found[state] for state in Verified}}
            for name, found in counts.items()
        ]
        shown = [records_table(self.title, summary)]
        wrong = {Verified.DIFFERENT.value, Verified.EXPLAINED.value}
        differing = [row for row in self.rows if row["state"] in wrong]
        if differing:
            named = ("benchmark", "figure", "published", "ours", "state", "reason")
            shown.append(records_table("Different", [{name: row[name] for name in named} for row in differing]))
        return shown


def verify(
    folder: str | Path, benchmarks: str | Sequence[str] = (), *, on_change: Callable[[int, int], None] | None = None
) -> VerificationTable:
    """Recompute the published figures of benchmarks from the recorded answers in `folder` and its subfolders, and
    compare them at the published precision.

    By default, `benchmarks` are all that bring published figures. Raises `InputError` if the folder is missing or files
    can't be read. The command is `proctor reproduce --published`.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(root, found="no such folder", expected="a folder with recorded answers")
    named = [benchmarks] if isinstance(benchmarks, str) else list(benchmarks)
    chosen = named or PUBLISHED_FIGURES.names()
    figures: list[tuple[str, VerifiedFigure]] = []
    missing: list[str] = []
    for number, name in enumerate(chosen, start=1):
        reader_of(name)
        published = PUBLISHED_FIGURES.of(name)
        if published is None:
            raise InputError("benchmark", found=repr(name), expected="one with published figures")
        row = _folder_of(root, published.files)
        if row is None:
            missing.append(name)
        else:
            figures += [(name, one) for one in wait_for(partial(published.verify, row))]
        if on_change is not None:
            on_change(number, len(chosen))
    return VerificationTable(tuple(figures), tuple(missing))


def _folder_of(root: Path, needed: Sequence[str]) -> Path | None:
    """The folder, or its first subfolder, that has all needed files; None if there is none."""
    locations = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    return next((location for location in locations if all((location / name).exists() for name in needed)), None)


def _files(name: str) -> str:
    return ", ".join(PUBLISHED_FIGURES.get(name).files)
