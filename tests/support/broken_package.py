"""A package `brk` that is found by entry points in this process, whose modules a test writes and edits."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from proctor.core import BENCHMARKS
from proctor.core import registry as registries
from proctor.judges import JUDGES
from proctor.media import CONDITIONS
from proctor.metrics import SCORERS
from proctor.systems import SYSTEMS

_REGISTRIES = (BENCHMARKS, SYSTEMS, CONDITIONS, JUDGES, SCORERS)

Offer = Callable[..., None]


def offering(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Gives `offer(modules, "systems.mine" = "brk.module:name", …)`, which installs the package anew each time."""
    monkeypatch.syspath_prepend(str(folder))
    for known in _REGISTRIES:
        monkeypatch.setattr(known, "_known", {**known._known})
        monkeypatch.setattr(known, "_offered", None)

    def offer(modules: Mapping[str, str], points: Mapping[str, str]) -> None:
        _forget()
        (folder / "brk").mkdir(exist_ok=True)
        for name, text in {"__init__": "", **modules}.items():
            (folder / "brk" / f"{name}.py").write_text(text, encoding="utf-8")
        installed = folder / "brk-1.dist-info"
        installed.mkdir(exist_ok=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: brk\nVersion: 1\n", encoding="utf-8")
        groups: dict[str, str] = {}
        for place, value in points.items():
            group, _, name = place.partition(".")
            groups[group] = groups.get(group, f"[proctor.{group}]\n") + f"{name} = {value}\n"
        (installed / "entry_points.txt").write_text("\n".join(groups.values()), encoding="utf-8")

    yield offer
    _forget()


def _forget() -> None:
    """As in a new process: nothing of the package is loaded."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "brk"]:
        del sys.modules[name]
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    registries._known_packages.cache_clear()
    for known in _REGISTRIES:
        vars(known)["_offered"] = None
        for name in [name for name in known._known if name not in known._own]:
            del known._known[name]
