"""The platforms that a challenge can be packed for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proctor.challenges.packs.carried import PackSummary
from proctor.challenges.packs.check import PackCheck, check_codabench, check_grand_challenge
from proctor.challenges.packs.codabench import write_codabench
from proctor.challenges.packs.grand_challenge import write_grand_challenge
from proctor.challenges.settings import SEALED, read_challenge

_WRITERS = {"codabench": write_codabench, "grand-challenge": write_grand_challenge}
_CHECKS = {"codabench": check_codabench, "grand-challenge": check_grand_challenge}
PLATFORMS = tuple(_WRITERS)
"""Their names."""


def pack_folder(folder: Path, platform: str) -> Path:
    """Where a challenge's pack goes where no other place is named: into the sealed part, since it holds references."""
    return folder / SEALED / "packs" / platform


def write_pack(platform: str, folder: Path, out: Path, image: str = "") -> PackSummary:
    """Writes the pack of a challenge into a new folder. `image` is the name of the scorer's image on the platform.

    Raises `InputError` for what the platform can't do, and where a phase has no baseline's answers.
    """
    return _WRITERS[platform](folder, read_challenge(folder, sealed=True), out, image)


def check_pack(platform: str, folder: Path, pack: Path) -> Iterator[PackCheck]:
    """Runs a pack as its platform would, without network, on the answers of a baseline of each phase, and compares its
    figures with those of the challenge in `folder`."""
    return _CHECKS[platform](folder, read_challenge(folder, sealed=True), pack)
