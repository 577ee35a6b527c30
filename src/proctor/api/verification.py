"""Published figures beside ours: `verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.api.sources import wait_for
from proctor.api.tables import FrameLike, Row
from proctor.core import BENCHMARKS, InputError, Verified, VerifiedFigure, reader_of

if TYPE_CHECKING:
    from proctor.core import Table


@dataclass(frozen=True, repr=False)
class VerificationTable(FrameLike):
    """A row for each published figure: `published`, `ours` (None: the recorded answers behind it are not at hand),
    `difference` (ours minus published), `state` (see `proctor.core.Verified`) and the reason of a difference that is
    known. `missing` are the benchmarks whose recorded answers were not found."""

    figures: tuple[tuple[str, VerifiedFigure], ...]
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Row]:
        """One figure a row, by benchmark."""
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
        """What is compared."""
        return "Published figures, computed again from recorded answers"

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be compared."""
        return tuple(f"{name}: no folder holds {_files(name)}." for name in self.missing)

    @property
    def tables(self) -> Sequence[Table]:
        """How many figures of each benchmark are in each state, and those that differ."""
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
    """Computes the published figures of benchmarks again, from the recorded answers in `folder` and the folders in it,
    and compares them, as exactly as they were published.

    `benchmarks` are all that bring published figures, where none are named. Raises `InputError` where the folder is not
    there or files in it can't be read. The command is `proctor verify`.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(root, found="no such folder", expected="a folder with recorded answers")
    named = [benchmarks] if isinstance(benchmarks, str) else list(benchmarks)
    chosen = named or [name for name in BENCHMARKS.names() if _verifies(name)]
    figures: list[tuple[str, VerifiedFigure]] = []
    missing: list[str] = []
    for number, name in enumerate(chosen, start=1):
        reader = reader_of(name)
        if reader.verified_files is None:
            raise InputError("benchmark", found=repr(name), expected="one with published figures")
        place = _folder_of(root, reader.verified_files)
        if place is None:
            missing.append(name)
        else:
            figures += [(name, one) for one in wait_for(lambda reader=reader, place=place: reader.verify(place))]  # type: ignore[misc]
        if on_change is not None:
            on_change(number, len(chosen))
    return VerificationTable(tuple(figures), tuple(missing))


def _verifies(name: str) -> bool:
    try:
        return reader_of(name).verified_files is not None
    except InputError:
        return False


def _folder_of(root: Path, needed: Sequence[str]) -> Path | None:
    """The folder itself or the first one in it that holds all these; the folder itself where nothing is needed."""
    places = [root, *sorted(one for one in root.iterdir() if one.is_dir())]
    return next((one for one in places if all((one / name).exists() for name in needed)), None)


def _files(name: str) -> str:
    return ", ".join(reader_of(name).verified_files or ())
