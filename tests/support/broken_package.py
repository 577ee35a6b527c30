"""A package `brk` that is found by entry points in this process, whose modules a test writes and edits."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from proctor.core import BENCHMARKS, ProctorError
from proctor.core import registry as registries
from proctor.judges import JUDGES
from proctor.media import CONDITIONS
from proctor.metrics import SCORERS
from proctor.systems import SYSTEMS

_REGISTRIES = (BENCHMARKS, SYSTEMS, CONDITIONS, JUDGES, SCORERS)

Offer = Callable[..., None]

HEAD = """import proctor
from proctor.core import *
from proctor.core.formats import BinaryFormat, ChoiceFormat, FreeTextFormat
from proctor.judges import CachedModel
from proctor.judges.cached_model import as_said
"""
"""The imports of a module."""

SYSTEM = """class S:
    name, settings = "mine", {}
    def supports(self, item): return True
    async def answer(self, item, view): return Answer(item_id=item.id, text="yes")
    def __init__(self): pass
"""
"""A system as a class."""

JUDGE = """class J:
    metrics = (Metric("tone", "Tone", formats=("free_text",)),)
    def __init__(self, client, judgements, *, prompt=None):
        self.name = f"mine[{{client.name}}]"
        self.asked = CachedModel(self.name, client, judgements)
    def applies(self, item): return True
    async def score(self, item, answer):
        from pydantic import BaseModel
        class Form(BaseModel):
            tone: float
        await self.asked.ask(as_said(Form), ["?" + item.id], item_id=item.id, content={{"q": item.id}}, flags=lambda _: ())
        {body}
"""
"""A judge as a class: it asks, and returns what its `body` says."""

GOOD = 'Score(item_id=item.id, metric="tone", value=1.0, scorer=self.name)'
"""A score as it should be."""

READER = """class Reader(BenchmarkReader):
    name, summary, rubric_judge = "b", "B", {judge!r}
    def load(self, data, media=None, *, seed=0):
        item = Item(id="q1", group="v1", question="Which?", answer=ChoiceFormat(), options=("spleen", "liver"),
                    reference=Reference(answer={reference!r}), tags={{"phase": "1"}})
        return Benchmark({fields})
    def read_recorded(self, path, benchmark):
        return RecordedAnswers(tuple(Answer(item_id=one, text="A", parsed="A") for one in path.read_text().split()))
READER = Reader()
"""
"""A reader of one question, with the `fields` of its benchmark."""

FIELDS = '"b", "B", (item,), (ACCURACY,), "accuracy", conditions=("text-only",)'


def offering(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Gives `offer(modules, "systems.mine" = "brk.module:name", …)`, which installs the package anew each time."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(
        sys, "dont_write_bytecode", True
    )  # a source of the same second and size would not be read again
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
        for row, value in points.items():
            group, _, name = row.partition(".")
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


def refusal(work: Callable[[], object]) -> str:
    """The one line of an error."""
    with pytest.raises(ProctorError) as caught:
        work()
    assert "\n" not in str(caught.value)
    return str(caught.value)
