"""A program that imports modules and prints, as a JSON list, what else that did: it is run in a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

_HEAVY = (
    "torch", "transformers", "tensorflow", "jax", "sklearn", "scipy", "pandas", "matplotlib", "cv2", "pyarrow",
    "statsmodels",
)  # fmt: skip
_BEFORE = ("proctor.core", "proctor.judges", "proctor.media", "proctor.metrics", "proctor.models", "proctor.systems")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND
_EVENTS = {
    "socket.connect": "a connection",
    "socket.getaddrinfo": "a look-up of a network address",
    "subprocess.Popen": "another process",
    "os.system": "another process",
    "os.mkdir": "a new folder",
    "os.remove": "a deleted file",
    "os.rename": "a renamed file",
}


def watched(modules: list[str]) -> list[str]:
    """What importing the modules did, one line for each: files written, connections, processes, heavy libraries."""
    for name in _BEFORE:
        package = importlib.import_module(name)
        for one in package.__all__:
            getattr(package, one)
    before, faults, now = set(sys.modules), list[str](), ""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if not now:
            return
        if event in _EVENTS:
            faults.append(
                f"importing {now}: found {_EVENTS[event]} ({str(args[0])[:80]}), expected that it does nothing"
            )
        elif event == "open" and _writes(args[1], args[2]):
            name = Path(str(args[0])).name
            faults.append(f"importing {now}: found the file {name!r} opened for writing, expected that it does nothing")

    sys.addaudithook(hook)
    for now in modules:
        importlib.import_module(now)
    now = ""
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    heavy = [name for name in _HEAVY if name in loaded]
    if heavy:
        expected = "expected that they wait for the first call that needs them (import them in the function)"
        faults.append(f"importing {', '.join(modules)}: found {', '.join(heavy)} loaded, {expected}")
    return faults


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(watched(sys.argv[1:])) + "\n")
