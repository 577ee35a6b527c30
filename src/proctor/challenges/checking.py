"""The check of what a team handed in: the participant's own (`proctor validate`), in a process that ends when it takes
too much."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from proctor.challenges.challenge import Challenge
from proctor.challenges.settings import Kind, Phase
from proctor.core import ConfigurationError

_SECONDS = 120
_BYTES_A_SECOND = 20 * 2**20  # of an archive that is compressed
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")
_TOO_MUCH = "found a file that takes too long to check, or too much memory, expected a smaller one"


def suffix_of(name: str) -> str:
    """How a file's name ends, for readers that go by it; "" for what is no plain ending.

    >>> suffix_of("answers.JSON"), suffix_of("a.b/c"), suffix_of("answers")
    ('.json', '', '')
    """
    suffix = Path(name).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def check_upload(challenge: Challenge, phase: Phase, kind: Kind, upload: Path, suffix: str) -> list[str]:
    """What is wrong with an upload, each problem with its place; [] where it fits. Nothing of it is unpacked, run or
    kept. Raises `ConfigurationError` where the check itself can't be made."""
    size = upload.stat().st_size
    seconds = _SECONDS + size // _BYTES_A_SECOND
    with tempfile.TemporaryDirectory(prefix="proctor-check-") as folder:
        named = Path(folder) / f"submission{suffix}"
        named.symlink_to(upload.resolve())
        asked = {
            "kind": kind,
            "path": str(named),
            "seconds": seconds,
            "benchmark": challenge.settings.benchmark,
            "track": challenge.settings.track,
            "data": str((challenge.folder / phase.questions).resolve()) if phase.questions else "",
        }
        return _asked(asked, 5.0 * seconds)


def _asked(asked: dict[str, object], patience_s: float) -> list[str]:
    """Asks a process of its own, without any of our secrets in its environment."""
    program = [sys.executable, "-B", "-P", "-m", "proctor.challenges.check_process"]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            program,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=patience_s,
            env=kept | threads,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [_TOO_MUCH]
    if done.returncode < 0:  # a bound ended it
        return [_TOO_MUCH]
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigurationError(f"a submission could not be checked: {' '.join(last)[:300]}")
    return [str(one) for one in json.loads(done.stdout)["problems"]]
