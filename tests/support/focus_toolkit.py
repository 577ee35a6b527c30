"""The official FOCUS toolkit (orena-focus, pinned in constraints.txt): its formats and evaluator, without its
loaders."""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.support.means import missing


def same_words(reference: str, said: str) -> bool:
    """What stands for the judges: the same words in any case."""
    words = " ".join(said.casefold().split())
    return bool(words) and words == " ".join(reference.casefold().split())


@lru_cache(maxsize=1)
def toolkit() -> SimpleNamespace:
    """Its modules `formats`, `models`, `taxonomy`, `rows` (the parser of published rows) and `evaluator`.

    It is installed without its dependencies, since most of them (datasets, decord, torchvision) load data
    that is not needed here: the package's own `__init__` is not run, and what loads data or judges is empty.
    """
    spec = find_spec("focus")
    if spec is None or not spec.submodule_search_locations:
        missing("orena-focus is not installed (make install)")
        raise AssertionError
    root = Path(spec.submodule_search_locations[0])
    for name in ("focus", "focus.data", "focus.evaluation"):
        _module(name).__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    known = sys.modules.get("datasets")
    sys.modules["datasets"] = ModuleType("datasets")
    sys.modules["datasets"].load_dataset = None  # type: ignore[attr-defined]
    judges = _module("focus.evaluation.judges")
    judges.Judge = judges.TransformersJudge = object

    def majority_vote(_: list[Any], __: Any, reference: str, said: str) -> bool:
        return same_words(reference, said)

    judges.majority_vote = majority_vote
    try:
        return SimpleNamespace(
            formats=importlib.import_module("focus.data.formats"),
            models=importlib.import_module("focus.data.data_models"),
            taxonomy=importlib.import_module("focus.taxonomy"),
            rows=importlib.import_module("focus.data.base_dataset"),
            evaluator=importlib.import_module("focus.evaluation.evaluator"),
        )
    finally:  # other packages look for the real one
        del sys.modules["datasets"]
        if known is not None:
            sys.modules["datasets"] = known


def _module(name: str) -> Any:
    return sys.modules.setdefault(name, ModuleType(name))
