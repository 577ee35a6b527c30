"""The folder of one training: what was trained on what, how it went, and where it goes on after it was killed."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue

from proctor.core import InputError, load_json, read_json, read_jsonl, write_whole

SETTINGS, STEPS, FINISHED, CHECKPOINTS = "settings.json", "steps.jsonl", "finished.json", "checkpoints"
_LIBRARIES = ("numpy", "torch", "transformers", "peft", "trl", "sentence-transformers")


class RunFolder:
    """Held by one process at a time, through `opened`. All writing is whole or not at all, but for `steps.jsonl`, whose
    last line may be half written when the process dies: it is cut off at the next start."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def opened(cls, path: Path, settings: dict[str, JsonValue]) -> Iterator[RunFolder]:
        """The folder, begun or gone on with.

        `settings` are all that changes the result, with the hash of the data and the seed. Raises `InputError` where
        the folder holds something else, was begun with other settings (which are named) or other versions of the
        libraries, or is in use by another process.
        """
        path.mkdir(parents=True, exist_ok=True)
        with (path / ".lock").open("ab") as lock:
            cls._take(path, lock)
            folder = cls(path)
            folder._begin({"settings": settings, "versions": _versions()})
            yield folder

    @staticmethod
    def _take(path: Path, lock: BinaryIO) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(path, found="a training under way in another process", expected="one at a time") from error

    def _begin(self, wanted: dict[str, JsonValue]) -> None:
        file = self.path / SETTINGS
        if not file.exists():
            others = sorted(one.name for one in self.path.iterdir() if one.name != ".lock")
            if others:
                raise InputError(self.path, found=f"{others[0]} in it", expected="a new folder, or one of a training")
            write_whole(file, json.dumps(wanted, indent=1, ensure_ascii=False) + "\n")
            return
        known = read_json(file, "the settings of a training")
        wanted = load_json(json.dumps(wanted))
        changed = sorted(_differing(known, wanted))
        if changed:
            raise InputError(
                file, found=f"a training with other {', '.join(changed)}", expected="the same, or another folder"
            )
        self._cut_half_line()

    def _cut_half_line(self) -> None:
        file = self.path / STEPS
        if file.exists() and (raw := file.read_bytes()) and not raw.endswith(b"\n"):
            write_whole(file, raw[: raw.rfind(b"\n") + 1].decode())

    @property
    def checkpoints(self) -> Path:
        """Where states stand that training goes on from."""
        found = self.path / CHECKPOINTS
        found.mkdir(exist_ok=True)
        return found

    @property
    def steps(self) -> list[dict[str, JsonValue]]:
        """What was noted, in order; after a resumption without the steps that were done again (see `forget_from`)."""
        file = self.path / STEPS
        found = read_jsonl(file, "the steps of a training") if file.exists() else []
        return [one for _, one in found if isinstance(one, dict)]

    def note(self, **told: JsonValue) -> None:
        """Adds a line: `step` with its loss, an evaluation, whatever there is to tell."""
        with (self.path / STEPS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(told, ensure_ascii=False) + "\n")

    def forget_from(self, step: int) -> None:
        """Removes the lines of `step` and later ones, which are done again from a checkpoint."""
        kept = [one for one in self.steps if not (isinstance(one.get("step"), int) and int(str(one["step"])) >= step)]
        write_whole(self.path / STEPS, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in kept))

    @property
    def finished(self) -> dict[str, JsonValue] | None:
        """What came of it; None while it is not done."""
        file = self.path / FINISHED
        told = read_json(file, "the end of a training") if file.exists() else None
        return told if isinstance(told, dict) else None

    def finish(self, told: dict[str, JsonValue]) -> None:
        """Marks it as done."""
        write_whole(self.path / FINISHED, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _versions() -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _differing(known: object, wanted: object, place: str = "") -> Iterator[str]:
    """The places in which two JSON values differ, such as "settings.seed"."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        for name in known.keys() | wanted.keys():
            yield from _differing(known.get(name), wanted.get(name), f"{place}.{name}" if place else str(name))
    elif known != wanted:
        yield place.removeprefix("settings.") or "content"
