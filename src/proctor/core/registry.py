"""Names to factories: what is built in is registered by decorator, what others add by entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from proctor.core.errors import ProctorError

__all__ = ["Registry", "UnknownNameError"]

T = TypeVar("T")


class UnknownNameError(ProctorError):
    """A name that is not registered; lists those that are."""


class Registry(Generic[T]):
    """Factories of one kind, by name; `group` is the entry point group that other packages add to.

    >>> systems: Registry[str] = Registry("system", group="proctor.example")
    >>> systems.add("random", "…")
    >>> systems.names()
    ['random']
    >>> systems.get("radnom")
    Traceback (most recent call last):
    proctor.core.registry.UnknownNameError: unknown system 'radnom': expected one of random
    """

    def __init__(self, what: str, *, group: str) -> None:
        self._what = what
        self._group = group
        self._known: dict[str, T] = {}
        self._asked_packages = False

    def add(self, name: str, thing: T) -> None:
        """Registers; a name that is taken is an error."""
        if name in self._known:
            raise ProctorError(f"the {self._what} {name!r} is registered twice")
        self._known[name] = thing

    def register(self, name: str) -> Callable[[T], T]:
        """The same as a decorator."""

        def decorate(thing: T) -> T:
            self.add(name, thing)
            return thing

        return decorate

    def names(self) -> list[str]:
        """All names, sorted."""
        self._ask_packages()
        return sorted(self._known)

    def get(self, name: str) -> T:
        """The registered thing, or an error that lists the choices."""
        self._ask_packages()
        if name not in self._known:
            raise UnknownNameError(
                f"unknown {self._what} {name!r}: expected one of {', '.join(self.names())}"
            )
        return self._known[name]

    def _ask_packages(self) -> None:
        if self._asked_packages:
            return
        self._asked_packages = True
        for point in entry_points(group=self._group):
            if point.name not in self._known:
                self._known[point.name] = point.load()
