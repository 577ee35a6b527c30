"""A program that imports modules and prints, as a JSON list, what else that did: it is run in a process of its own."""

from __future__ import annotations

import builtins
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
    faults, now = list[str](), ""
    own = {name.partition(".")[0] for name in modules}

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

    plain_import = builtins.__import__

    def watching(name: str, *given: Any, **more: Any) -> Any:
        inside = str((given[0] if given else {}).get("__name__", ""))
        if inside.partition(".")[0] in own and name.partition(".")[0] in _HEAVY:
            expected = "expected that it waits for the first call that needs it (import it in the function)"
            faults.append(f"importing {now}: found {name} imported by {inside}, {expected}")
        return plain_import(name, *given, **more)

    sys.addaudithook(hook)
    builtins.__import__ = watching
    try:
        for now in modules:
            importlib.import_module(now)
    finally:
        builtins.__import__ = plain_import
        now = ""
    return faults


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(watched(sys.argv[1:])) + "\n")
