"""`proctor challenge pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.cli.output import note, say
from proctor.cli.progress import at_work
from proctor.core import InputError, Option, UsageError, count_of


def _platforms() -> list[str]:
    from proctor.challenges import PLATFORMS

    return list(PLATFORMS)


def pack(
    platform: Annotated[
        str, Option("codabench or grand-challenge.", metavar="PLATFORM", argument=True, names=_platforms)
    ],
    folder: Annotated[Path, Option("The folder with challenge.yaml.", metavar="DIR", argument=True)],
    out: Annotated[Path | None, Option("Where the pack goes. [default: DIR/sealed/packs/PLATFORM]")] = None,
    image: Annotated[str, Option("The name of the scorer's image on the platform.")] = "",
    check: Annotated[bool, Option("Run it as the platform would, and compare.", "--check")] = False,
) -> None:
    """Pack a challenge for another platform.

    The pack holds the references, and marks with Proctor itself, without network. --check runs it on a baseline's
    answers and compares its figures with Proctor's own; a pack that is there already is checked as it is. It runs in
    the scorer's image where podman or docker has that, else in a process.

    Example: proctor challenge pack codabench my-challenge --check
    """
    from proctor.challenges import PLATFORMS, check_pack, pack_folder, write_pack

    if platform not in PLATFORMS:
        raise UsageError("PLATFORM", f"one of {', '.join(PLATFORMS)}", found=repr(platform))
    place = pack_folder(folder, platform) if out is None else out
    if check and (place / "README.md").is_file():
        note(f"{place} is there already and is checked as it is.")
    else:
        with at_work("packing"):
            written = write_pack(platform, folder, place, image)
        say(f"{count_of(len(written.phases), 'phase')} packed for {platform} in {place}: read {place / 'README.md'}")
        note(*written.notes)
    if not check:
        return
    for one in check_pack(platform, folder, place):
        if not one.ok:
            found = "; ".join(one.wrong[:3]) or "no figures"
            raise InputError(place, f"phase {one.phase}", found=found, expected="Proctor's own figures")
        told = f"{count_of(one.figures, 'figure')} as Proctor's own (largest difference {one.largest:.1e})"
        say(f"{one.phase}: {one.baseline} in {one.ran}: {told}")
