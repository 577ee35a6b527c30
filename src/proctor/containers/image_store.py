"""Uploaded images on a machine: loaded one at a time, known by their digests, removed when nobody needs them."""

from __future__ import annotations

import asyncio
import fcntl
import json
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from proctor.containers.box_folders import base_folder
from proctor.containers.engine import engine, succeeded
from proctor.containers.image_archive import ImageArchive, image_digest
from proctor.core import InputError

_OURS = "localhost/proctor-upload"
_LOADING_S = 3600.0


class ImageStore:
    """Uploaded images of podman or docker. Each load has a name of its own for the image, so that another one that
    needs the same image does not lose it."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._kept: defaultdict[str, list[str]] = defaultdict(list)

    async def load(self, archive: Path) -> str:
        """As `Executor.load`. Names that the archive gives its image are taken off: they could be another one's. Raises
        `InputError` where another image has such a name already, since loading would take it away."""
        checked = await asyncio.to_thread(image_digest, archive)
        async with self._alone() as journal:
            await self._take_off(journal)
            new = await self._new_names(archive, checked)
            before = await self._names(checked.digest)
            journal.write_text(json.dumps(new))
            await succeeded(self._command, "load", "--quiet", f"--input={archive}", patience_s=_LOADING_S)
            added = await self._names(checked.digest) - before
            name = f"{_OURS}:{secrets.token_hex(16)}"
            await succeeded(
                self._command, "tag", checked.digest, name
            )  # without one, it could be removed as one that nobody needs
            self._kept[checked.digest].append(name)
            for other in added:
                await self._untag(other)
            journal.unlink()
        return checked.digest

    async def unload(self, digest: str) -> None:
        """Gives one load of an image back; its layers are removed with the last one."""
        if self._kept[digest]:
            await self._untag(self._kept[digest].pop())

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Path]:
        """While no other process of this user loads: two archives may name their images alike."""
        with (base_folder() / f"{self._command}.lock").open("w") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            yield base_folder() / f"{self._command}.loading"

    async def _take_off(self, journal: Path) -> None:
        """The names that a process left which ended while it loaded."""
        for name in await asyncio.to_thread(_read, journal):
            await self._untag(name)

    async def _new_names(self, archive: Path, checked: ImageArchive) -> list[str]:
        """Those of an archive's names that no image has here."""
        found = {name: await self._inspected("{{.Id}}", name) for name in checked.names}
        for name, other in found.items():
            if other and other.removeprefix("sha256:") not in checked.digest:
                expected = "a name that is free, or none: save it by its digest"
                raise InputError(archive, found=f"the name {name[:80]!r}, which another image has", expected=expected)
        return [name for name, other in found.items() if not other]

    async def _names(self, digest: str) -> set[str]:
        return set(json.loads(await self._inspected("{{json .RepoTags}}", digest) or "null") or ())

    async def _inspected(self, wanted: str, image: str) -> str:
        """What an image says of itself; nothing where it is not there."""
        code, out, _ = await engine(self._command, "image", "inspect", f"--format={wanted}", "--", image)
        return "" if code else out.strip()

    async def _untag(self, name: str) -> None:
        """Takes a name off; an image without any other is removed."""
        await engine(self._command, "rmi", "--", name)


def _read(journal: Path) -> list[str]:
    with suppress(FileNotFoundError, ValueError):
        return [str(name) for name in json.loads(journal.read_text())]
    return []
