"""A program that checks an upload within limits of time and memory. A hostile file ends this process and no other.

Standard input: a JSON object with `kind`, `path`, `seconds` and, for a file of answers, `benchmark`, `track`, `data`
(the folder with the phase's public questions) and the phase's `budget`. Standard output: the `Admission` as a JSON
object. It is a module of its own since it must start fast and import little.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.core import ProctorError, limit_resources
from proctor_challenge.containers import image_digest

if TYPE_CHECKING:
    from proctor_challenge.admission import Admission

MAX_MEMORY = {"file": 512 * 2**20, "image": 4 * 2**30}
"""The memory of a check in bytes, by the kind of upload, beside that of the program itself."""

MAX_PROBLEMS, MAX_CHARACTERS = 100, 1000


def checked(request: dict[str, Any]) -> Admission:
    """The admission of a file of answers, or of an archive with an image, which is not unpacked. No line names the folder
    that the file is checked in."""
    from proctor_challenge.admission import Admission, admission
    from proctor_challenge.settings import Budget

    path = Path(request["path"])
    if request["kind"] == "image":
        try:
            image_digest(path)
        except ProctorError as error:
            return Admission(_named((str(error),), path))
        return Admission()
    budget = Budget.model_validate(request["budget"])
    found = admission(request["benchmark"], request["track"], Path(request["data"]), budget, path)
    return Admission(_named(found.problems, path), _named(found.wrong, path), found.count)


def _named(lines: Sequence[str], path: Path) -> tuple[str, ...]:
    return tuple(line.replace(f"{path.parent}/", "") for line in lines)


def _own_memory() -> int:
    """The address space of this process in bytes."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


def main() -> None:
    """Reads the request, sets the limits, checks, and prints the problems."""
    request = json.load(sys.stdin)
    from proctor.api import validate

    del validate  # what it imports is the program's own memory
    memory = MAX_MEMORY[request["kind"]]
    limit_resources(seconds=int(request["seconds"]), memory=_own_memory() + memory, final=True)
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))
    try:
        found = checked(request)
        told = {"problems": _short(found.problems), "wrong": _short(found.wrong), "count": found.count}
    except MemoryError:
        line = f"found a file that takes more than {memory // 2**20} MB of memory, expected a smaller one"
        told = {"problems": [line], "wrong": [], "count": 0}
    json.dump(told, sys.stdout)


def _short(lines: Sequence[str]) -> list[str]:
    """The first lines, each shortened."""
    kept = list(lines)
    if len(kept) > MAX_PROBLEMS:
        kept = [*kept[: MAX_PROBLEMS - 1], f"… and {len(kept) - MAX_PROBLEMS + 1} more"]
    return [line[:MAX_CHARACTERS] for line in kept]


if __name__ == "__main__":
    main()
