"""The systems that can be named: those built in, and those other packages add."""

from __future__ import annotations

from collections.abc import Callable

from proctor.core import Registry, System

__all__ = ["SYSTEMS"]

SYSTEMS: Registry[Callable[..., System]] = Registry("system", group="proctor.systems")
"""Factories `build(*, seed=0) -> System` by name; built-in ones are entry points like everybody's."""
