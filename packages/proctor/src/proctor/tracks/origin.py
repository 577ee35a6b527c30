"""Whether videos are simulated: their benchmark says so, and boards of real procedures don't take it."""

from __future__ import annotations

from pathlib import Path

from proctor.core import read_json


def simulated_there(folder: Path) -> bool:
    """Whether the simulator wrote the folder, or the one it lies in."""
    manifests = [parent / "manifest.json" for parent in (folder, folder.parent)]
    known = [read_json(manifest, "a manifest") for manifest in manifests if manifest.is_file()]
    return any(isinstance(one, dict) and one.get("simulated") is True for one in known)
