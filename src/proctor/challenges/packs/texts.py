"""The texts of a pack, from templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def filled(template: str, **values: Any) -> str:
    """A template's text with these values."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown, shell and Python, of the organiser's own words
    )
    return environment.get_template(template).render(**values)


def template_text(name: str) -> str:
    """A file of a pack that needs nothing filled in."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
