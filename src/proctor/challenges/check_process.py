"""A program that checks an upload within limits of time and memory. A hostile file ends this process and no other.

Standard input: a JSON object with `kind`, `path`, `seconds` and, for a file of answers, `benchmark`, `track` and `data`
(the folder with the phase's public questions). Standard output: a JSON object with the `problems`. It is a module of
its own since it must start fast and import little.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from proctor.containers import image_digest
from proctor.core import ProctorError, limit_resources

MAX_MEMORY = {"file": 512 * 2**20, "image": 4 * 2**30}
"""The memory of a check in bytes, by the kind of upload, beside that of the program itself."""

NICENESS = 10
MAX_PROBLEMS, MAX_CHARACTERS = 100, 1000


def problems_of(request: dict[str, Any]) -> list[str]:
    """The problems of a file of answers, by `proctor validate`, or of an archive with an image, which is not
    unpacked."""
    from proctor.api import validate

    path = Path(request["path"])
    given = {"track": request["track"]} if request["track"] else {}
    try:
        if request["kind"] == "image":
            image_digest(path)
            return []
        found = validate(request["benchmark"], path, data=Path(request["data"]), every=True, **given)
    except ProctorError as error:
        return [str(error).replace(f"{path.parent}/", "")]
    if found.ok:
        return []
    lines = [one for one in found.shown if isinstance(one, str)]
    errors = [line for line in lines if line.startswith("error")]
    return errors or lines  # without warnings, what was not checked, and counts


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
    os.nice(NICENESS)  # pages come first
    limit_resources(seconds=int(request["seconds"]), memory=_own_memory() + memory, final=True)
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))
    try:
        found = problems_of(request)
    except MemoryError:
        found = [f"found a file that takes more than {memory // 2**20} MB of memory, expected a smaller one"]
    if len(found) > MAX_PROBLEMS:
        found = [*found[: MAX_PROBLEMS - 1], f"… and {len(found) - MAX_PROBLEMS + 1} more"]
    json.dump({"problems": [one[:MAX_CHARACTERS] for one in found]}, sys.stdout)


if __name__ == "__main__":
    main()
