"""A program of its own: checks what a team handed in, within bounds of time and memory.

Standard input: one JSON object, `kind`, `path` and, for a file of answers, `benchmark`, `track` and `data` (the folder
with the phase's public questions). Standard output: one JSON object with the `problems`, none for what fits. What keeps
it busy, or fills its memory, ends this process and no other.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from proctor.containers import image_digest
from proctor.core import ProctorError

MOST_MEMORY = 4 * 2**30
MOST_PROBLEMS, MOST_LETTERS = 100, 1000


def problems_of(asked: dict[str, Any]) -> list[str]:
    """What is wrong with a file of answers, by the check that participants have (`proctor validate`), or with an
    archive that should hold one image, of which nothing is unpacked."""
    from proctor.api import validate

    path = Path(asked["path"])
    given = {"track": asked["track"]} if asked["track"] else {}
    try:
        if asked["kind"] == "image":
            image_digest(path)
            return []
        found = validate(asked["benchmark"], path, data=Path(asked["data"]), every=True, **given)
    except ProctorError as error:
        return [str(error).replace(f"{path.parent}/", "")]
    return [] if found.ok else [one for one in found.shown if isinstance(one, str)]


def main() -> None:
    """Reads, checks, prints."""
    asked = json.load(sys.stdin)
    bounds = (
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_CPU, int(asked["seconds"])),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in bounds:
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))
    try:
        found = problems_of(asked)
    except MemoryError:
        found = [f"found a file that takes more than {MOST_MEMORY // 2**30} GB of memory, expected a smaller one"]
    json.dump({"problems": [one[:MOST_LETTERS] for one in found[:MOST_PROBLEMS]]}, sys.stdout)


if __name__ == "__main__":
    main()
