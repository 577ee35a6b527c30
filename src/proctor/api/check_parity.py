"""`proctor train check-parity`: a trained judge compared along all paths that its weights take, and exported."""

# No `from __future__ import annotations`: the command line reads these annotations.

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

from proctor.api.options import filled
from proctor.core import InputError, Option

if TYPE_CHECKING:
    from proctor.core import Table


class ParityOptions(TypedDict, total=False):
    """How a trained judge is compared: with a server of your own under `base_url`, which serves `model`, instead of one
    that is started for the check. `export` is a new folder for the judge, without anything that it learned from."""

    base_url: Annotated[str | None, Option("A server with the merged weights. [default: its own]", default=None)]
    model: Annotated[str, Option("What that server calls them.", default="judge")]
    export: Annotated[Path | None, Option("Write adapter, merged weights and card there.", default=None)]
    device: Annotated[str, Option("cpu, cuda, or a GPU where there is one.", default="auto")]


@dataclass(frozen=True)
class ParityCheck:
    """How far the paths are apart (`table`), what is wrong with them, and where the judge was exported to."""

    table: "Table"
    faults: tuple[str, ...]
    exported: Path | None


def check_parity(run: str | Path, **options: Unpack[ParityOptions]) -> ParityCheck:
    """Compares the scores of a trained judge on up to 50 items: in the trainer's memory, with the adapter loaded again,
    merged, and served over HTTP. `run` is the folder of the training; merged weights are written into it.

    A judge with a fault is not exported. Raises `InputError` for a folder without a trained judge, and for an export
    to a folder that is there. The command is `proctor train check-parity`.
    """
    from proctor.models import ModelSpec
    from proctor.training import check_run, export_run

    given, folder = filled("check_parity", ParityOptions, options), Path(run)
    if given["export"] is not None and given["export"].exists():
        raise InputError(given["export"], found="something there", expected="a new folder")
    server = None if given["base_url"] is None else ModelSpec(name=given["model"], base_url=given["base_url"])
    report = check_run(folder, server=server, device=given["device"])
    exported = None if given["export"] is None or report.faults else export_run(folder, given["export"])
    return ParityCheck(report.table(), report.faults, exported)
