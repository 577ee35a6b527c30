"""What fitting a judge refuses, and with which words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor_train
from proctor.core import ProctorError
from tests.support.fuzzed_store import NAME, fuzzed

REFUSED: list[tuple[str, Callable[[Any, Path], Any]]] = [
    ("nothing: found no such folder, expected a folder to write to",
     lambda s, f: proctor_train.fit_judge(s, NAME, method="choice", out=f / "nothing" / "x.json")),
    ("found a folder, expected a file to write", lambda s, f: proctor_train.fit_judge(s, NAME, method="choice", out=f)),
    ("--method 'luck' is unknown: choose calibration, choice, examples, embedded or pipeline",
     lambda s, f: proctor_train.fit_judge(s, NAME, method="luck", out=f / "x.json")),  # type: ignore[arg-type]
    ("No scorer: one judge's scores are calibrated",
     lambda s, f: proctor_train.fit_judge(s, NAME, method="calibration", out=f / "x.json")),
    ("a, b: one judge's scores are calibrated",
     lambda s, f: proctor_train.fit_judge(s, NAME, method="calibration", out=f / "x.json", scorer=["a", "b"])),
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fuzzed(tmp_path_factory.mktemp("refused"), 1, items=12).store


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message[:40] for message, _ in REFUSED])
def test_a_refusal_of_a_fit(message: str, call: Any, store: Any, tmp_path: Path) -> None:
    with pytest.raises(ProctorError, match=re.escape(message)):
        call(store, tmp_path)
