"""Prompts are template files: read, hashed and rendered in a sandbox.

A file holds the user's message, or two blocks, `{% block system %}` and `{% block user %}`; text outside of blocks is
commentary.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import InputError, package_folders, read_bytes
from proctor.models import template_check

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_SUFFIX = ".txt.j2"


@dataclass(frozen=True)
class Prompt:
    """A prompt template; `text` is that of its file, `sha256` the hash of its bytes, for the record. `variant` names it
    if it is not the default one."""

    name: str
    sha256: str
    _template: Template = field(repr=False)
    variant: str = ""
    text: str = field(default="", repr=False)

    @property
    def mark(self) -> str:
        """The suffix for the name of a judge that uses a variant: another prompt makes another judge."""
        return f":{self.variant}" if self.variant else ""

    @property
    def variables(self) -> frozenset[str]:
        """The names of the values that the template uses."""
        from jinja2 import meta

        environment = _environment()
        return frozenset(meta.find_undeclared_variables(environment.parse(self.text)) - environment.globals.keys())

    def render(self, **values: object) -> tuple[str, str]:
        """The system's and the user's message. Raises `InputError` where the template uses a missing value, or
        fails."""
        from jinja2 import TemplateError

        known = self._template.blocks
        try:
            if known:
                context = self._template.new_context(values)
                system, user = ("".join(known[name](context)) if name in known else "" for name in ("system", "user"))
            else:
                system, user = "", self._template.render(values)
        except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
            reason = str(error)
        else:
            return system.strip(), user.strip()
        raise InputError(self.name, "prompt", found=reason, expected="a template that can be filled in")


def template_ends(text: str) -> bool:
    """Whether a template by an unknown author terminates, tested in a process with limits of time and memory."""
    done = subprocess.run(  # noqa: S603 - this interpreter, and a file of this package
        [sys.executable, "-P", template_check.__file__],
        input=text.encode("utf-8", "replace"),
        capture_output=True,
        check=False,
    )
    return done.returncode in (0, 1)  # 1: an invalid template, reported when it is compiled


def load_prompt(path: Path) -> Prompt:
    """Reads a prompt. Raises `InputError` for a file that can't be read, is empty or is no template."""
    from jinja2 import TemplateSyntaxError

    try:
        raw = read_bytes(path)
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise InputError(path, "prompt", found=str(reason), expected="a text file") from error
    if not text.strip():
        raise InputError(path, "prompt", found="nothing", expected="a template")
    if not any(path.resolve().is_relative_to(folder) for folder in package_folders()) and not template_ends(text):
        raise InputError(path, "prompt", found="a template that does not come to an end", expected="Jinja2")
    try:
        template = _compiled(text)
    except TemplateSyntaxError as error:
        raise InputError(path, f"line {error.lineno}", found=str(error.message), expected="Jinja2") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, and nesting without an end
        raise InputError(path, "prompt", found="what can't be compiled", expected="Jinja2") from error
    if template.blocks and not {"user"} <= set(template.blocks) <= {"system", "user"}:
        found = f"the blocks {', '.join(sorted(template.blocks))}"
        raise InputError(path, "prompt", found=found, expected="the blocks system and user, or none")
    return Prompt(path.name, hashlib.sha256(raw).hexdigest(), template, text=text)


@lru_cache(maxsize=64)
def _compiled(text: str) -> Template:
    template = _environment().from_string(text)
    template.globals = dict(template.globals)  # rendering reads them twice, and a chain of mappings slowly
    return template


def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,  # plain text for a model, never HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )


def prompt_file(folder: Path, usual: str, choice: str) -> Path:
    """The file of a prompt by the name of a variant (`paper` is USUAL.paper.txt.j2 in the folder) or by its path. Raises
    `InputError` that lists the names."""
    named = {file.name.removeprefix(f"{usual}.").removesuffix(_SUFFIX): file for file in _variants(folder, usual)}
    if choice in named:
        return named[choice]
    file = Path(choice).expanduser()
    if file.is_file():
        return file
    known = f"a template file, or one of: {', '.join(sorted(named))}" if named else "a template file"
    raise InputError("--prompt", found=repr(choice), expected=f"{known} ({usual.replace('_', '-')})")


def chosen_prompt(usual: Path, chosen: Path | None) -> Prompt:
    """The default prompt, or the chosen one with its `variant`."""
    if chosen is None or chosen == usual:
        return load_prompt(usual)
    own = usual.name.removesuffix(_SUFFIX)
    variant = chosen.name.removesuffix(".j2").removesuffix(".txt").removeprefix(f"{own}.")
    return replace(load_prompt(chosen), variant=variant)


def _variants(folder: Path, usual: str) -> list[Path]:
    files = folder.iterdir() if folder.is_dir() else ()
    return [file for file in files if re.fullmatch(rf"{re.escape(usual)}\.[\w-]+\.txt\.j2", file.name)]
