"""A new package that extends Proctor, written from a template: it is installed, tested and run as it stands."""

from __future__ import annotations

import io
import keyword
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import BENCHMARKS, UsageError, whole_folder

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATE = Path(__file__).parent / "template"
_SUFFIX = ".j2"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_PICTURES = {"on-1": 240, "on-2": 200, "off-1": 10, "off-2": 30}
"""The example's pictures, and how bright each is."""


def new_package(name: str, folder: str | Path | None = None) -> Path:
    """Write a package into a new folder (by default one with its name) and return the folder. It has a reader, a system, a
    judge, a metric and a condition with entry points, prompts, an example, and tests with `proctor.testing`.

    `name` is that of the distribution, in small letters and digits, with hyphens. Raises `UsageError` for another name, and
    for one that is taken: by an installed package, a module or a benchmark; and `InputError` for a folder that is not
    empty. Nothing is left half-written.

    >>> new_package("lap kit")
    Traceback (most recent call last):
    proctor.core.errors.UsageError: NAME: found 'lap kit', expected small letters and digits, with hyphens between them
    """
    check_name(name)
    out = Path(name if folder is None else folder)
    with whole_folder(out) as draft:
        _write(draft, name)
    return out


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that no new package can have."""
    if not _NAME.fullmatch(name):
        raise UsageError("NAME", "small letters and digits, with hyphens between them", found=repr(name))
    module = module_name(name)
    if keyword.iskeyword(module) or module in sys.stdlib_module_names:
        raise UsageError("NAME", "a name that Python does not use itself", found=repr(name))
    try:
        taken = f"the installed package {distribution(name).name}"
    except PackageNotFoundError:
        taken = f"the module {module}" if find_spec(module) is not None else ""
    if name in BENCHMARKS.names():
        taken = f"the benchmark {name}"
    if taken:
        raise UsageError("NAME", "one that nothing has yet", found=f"{name!r}, which is that of {taken}")


def module_name(name: str) -> str:
    """The Python package of a distribution.

    >>> module_name("lap-kit")
    'lap_kit'
    """
    return name.replace("-", "_")


def _write(draft: Path, name: str) -> None:
    environment = _environment()
    values = {"project": name, "package": module_name(name)}
    for file in sorted(_TEMPLATE.rglob(f"*{_SUFFIX}")):
        location = file.relative_to(_TEMPLATE).as_posix().removesuffix(_SUFFIX)
        location = location.replace("/package/", f"/{values['package']}/").replace("/project.", f"/{name}.")
        target = draft / location
        target.parent.mkdir(parents=True, exist_ok=True)
        text = environment.from_string(file.read_text(encoding="utf-8")).render(**values)
        target.write_text(text, encoding="utf-8", newline="\n")
    for picture, light in _PICTURES.items():
        (draft / "example" / f"{picture}.png").write_bytes(_drawn(light))


def _environment() -> Environment:
    """Templates with brackets of their own: braces belong to the prompts that are written."""
    from jinja2 import Environment, StrictUndefined

    return Environment(
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  (code and texts, never HTML)
    )


def _drawn(light: int) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (64, 48), (light, light, light)).save(out, "PNG")
    return out.getvalue()
