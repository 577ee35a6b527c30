"""A separate program that reads pictures from medical files, within limits of time and memory, one after another.

A file that exceeds the limits ends this process and no other. Standard input: one JSON object a line, with `kind`, `path`
and the options. Standard output: one line of JSON for each, for a picture followed by its pixels. Personal data stay
here: only pixels, plain numbers and messages of our own go out.
"""

from __future__ import annotations

import gc
import json
import logging
import resource
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from proctor.core import limit_resources
from proctor.media.scan_values import RefusedScanError, ScanPicture

MAX_SECONDS = 5
"""Of processor time, for one file."""

MAX_BYTES = 500 * 2**20
"""Beyond the memory of the libraries."""

_TIME_AND_MEMORY = f"a file that takes more than {MAX_SECONDS} s or {MAX_BYTES // 2**20} MB"
_NAMES = {"dicom": "DICOM", "nifti": "NIfTI"}
_loaded: dict[str, int] = {}


def reader_of(kind: str) -> ModuleType:
    """The module that reads such files; its library is loaded before the limits apply."""
    if kind == "dicom":
        from proctor.media import dicom_pixels as reader

        reader.prepare()
    else:
        import nibabel  # noqa: F401 - before the bounds

        from proctor.media import nifti_slices as reader  # type: ignore[no-redef]
    if kind not in _loaded:
        gc.collect()
        gc.freeze()  # the libraries, which stay
        _loaded[kind] = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return reader


def answer(request: dict[str, Any]) -> dict[str, object] | ScanPicture:
    """The requested facts or picture; "found" and "expected" in case of an error."""
    kind = str(request["kind"])
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
    reader = reader_of(kind)
    limit_resources(seconds=MAX_SECONDS, memory=max(_loaded.values()) + MAX_BYTES)
    try:
        if request["wanted"] == "facts":
            return dict(reader.facts(request["path"]))
        window = None if request["window"] is None else (float(request["window"][0]), float(request["window"][1]))
        if kind == "dicom":
            made: ScanPicture = reader.picture(request["path"], request["frame"], window)
        else:
            made = reader.picture(request["path"], request["axis"], request["slice"], request["volume"], window)
    except RefusedScanError as error:
        return {"found": error.found, "expected": error.expected}
    except MemoryError:
        return {"found": _TIME_AND_MEMORY, "expected": "a smaller one", "last": True}
    except FileNotFoundError:
        return {"found": "no such file", "expected": f"a {_NAMES[kind]} file"}
    except Exception as error:  # noqa: BLE001 - the process's edge: whatever a broken file makes a library raise
        name = type(error).__name__
        return {"found": f"a {_NAMES[kind]} file that can't be read ({name})", "expected": "a whole one"}
    return made


def write_reply(out: BinaryIO, made: dict[str, object] | ScanPicture) -> None:
    """Writes one line, and the pixels after it."""
    if isinstance(made, ScanPicture):
        out.write(json.dumps({"shape": list(made.pixels.shape), "aspect": made.aspect}).encode() + b"\n")
        out.write(made.pixels.tobytes())
    else:
        out.write(json.dumps(made).encode() + b"\n")
    out.flush()


def main() -> None:
    """Answers line by line, until the input ends, or a file has filled the memory."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        made = answer(json.loads(line))
        write_reply(out, made)
        last = isinstance(made, dict) and "last" in made
        del made
        if last:
            return


if __name__ == "__main__":
    main()
