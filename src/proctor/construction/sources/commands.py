"""`proctor build sources`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.core import PluginReport, Steps


def sources(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The project folder.", show_default=False)],
    steps: Steps,
    apply: Annotated[bool, typer.Option("--apply", help="Write copies, as was decided.")] = False,
) -> PluginReport:
    """Check videos; hide what identifies.

    Lists what each video is and holds, and proposes stretches outside the body and text overlays to hide. People decide
    in sources/decisions.csv; --apply then writes copies without sound and metadata, and checks them. Originals stay.

    Example: proctor build sources abdomen
    """
    from proctor.construction.sources.reporting import check_sources

    return check_sources(folder, steps, apply=apply)
