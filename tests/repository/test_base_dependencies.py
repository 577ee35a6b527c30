"""What serves one corner alone is an extra: the base install stays small, and whoever needs an extra is told which."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from proctor.core import ConfigurationError
from proctor.core.errors import need_extra
from proctor.interchange import every_eval_ever
from proctor.media import Redaction, find_text
from proctor.media.mp4 import redact
from proctor.reports import plots, write_picture
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa.methods.saliency import saliency
from tests.repository.test_requirements import PROJECT, of_others, requirements
from tests.support.clock_video import ClockVideo, write_clock_video

MOST = 21
CORNERS = {
    "every-eval-ever": {"jsonschema"},
    "plots": {"matplotlib"},
    "pose": {"onnxruntime", "opencv-contrib-python-headless"},
    "vision": {"opencv-contrib-python-headless"},
}


def test_the_base_install_stays_small() -> None:
    base = {one.name for one in requirements()}
    assert len(base) <= MOST, sorted(base)
    for extra, names in CORNERS.items():
        assert {one.name for one in requirements(extra)} == names
        assert not names & base
    assert not {one.name for one in of_others()} - {"proctor-eval"} & base


def test_tests_have_every_extra_that_this_environment_can_hold() -> None:
    """`make install` installs what the tests need: the corners of the base install as well."""
    tested = {one.name for one in requirements("test")}
    assert {"h11", "packaging"}.union(*CORNERS.values()) <= tested


PICTURE = '<svg width="10" height="10"></svg>'


def video(folder: Path) -> Path:
    return write_clock_video(folder / "clock.mp4", ClockVideo((0, 40, 80, 120)))


WITHOUT: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a plot": ("matplotlib", "plots", lambda _: plots.draw_intervals([], plots.Scale("x"))),
    "a picture as .pdf": ("matplotlib", "plots", lambda folder: write_picture(PICTURE, folder / "x.pdf")),
    "seriation": ("cv2", "vision", lambda _: build_system("seriation")),
    "enlarging details": ("cv2", "vision", lambda _: saliency([])),
    "finding text in videos": ("cv2", "vision", lambda folder: find_text(video(folder))),
    "hiding areas of a video": (
        "cv2", "vision", lambda folder: redact(video(folder), folder / "out.mp4", [Redaction(start=0.0, how="black")])
    ),
    "the format Every Eval Ever": (
        "jsonschema", "every-eval-ever", lambda _: every_eval_ever._check({}, next(every_eval_ever._SCHEMAS.glob("*.json")).name, "x")
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WITHOUT)
def test_a_missing_extra_is_named_in_a_sentence(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, extra, use = WITHOUT[what]
    every_eval_ever._validator.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as told:
        use(tmp_path)
    assert str(told.value) == f"{what} needs the extra {extra!r}: pip install 'proctor-eval[{extra}]'"
    assert extra in PROJECT["optional-dependencies"]


HIDDEN = """
import sys
sys.modules[{module!r}] = None
try:
    import {user}
except Exception as error:
    print(type(error).__name__, error, sep=": ")
"""


@pytest.mark.parametrize(
    ("module", "user", "what"),
    [
        ("h11", "proctor_challenge.containers.gateway", "a container"),
        ("packaging.requirements", "proctor_challenge.packs.parts", "a package for a platform"),
    ],
)
def test_what_a_challenge_needs_is_named(module: str, user: str, what: str) -> None:
    code = HIDDEN.format(module=module, user=user)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout
        == f"ConfigurationError: {what} needs the package proctor-challenge: pip install proctor-challenge\n"
    )


def test_a_module_that_another_thread_is_importing_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "half_imported", ModuleType("half_imported"))  # as OpenCV: no spec meanwhile
    need_extra("vision", "seriation", "half_imported")
    with pytest.raises(ConfigurationError, match="seriation needs the extra 'vision'"):
        need_extra("vision", "seriation", "never_imported")
