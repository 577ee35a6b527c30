"""Names to factories: what is built in and what other packages add, by entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
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
        self._offered: dict[str, EntryPoint] | None = None

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
        """All names, sorted. Nothing is loaded for it. Raises `ProctorError` for a name that two packages offer."""
        return sorted(self._known.keys() | self._packages().keys())

    def get(self, name: str) -> T:
        """The registered thing, or an error that lists the choices. What a package offers is loaded when
        it is asked for: one that is broken breaks nothing else, and is named in a `ProctorError`."""
        if name not in self._known:
            offered = self._packages().get(name)
            if offered is None:
                raise UnknownNameError(
                    f"unknown {self._what} {name!r}: expected one of {', '.join(self.names())}"
                )
            try:
                self._known[name] = offered.load()
            except (ImportError, AttributeError) as error:
                raise ProctorError(
                    f"the {self._what} {name!r} ({offered.value}) can't be loaded: {error}"
                ) from error
        return self._known[name]

    def _packages(self) -> dict[str, EntryPoint]:
        if self._offered is None:
            offered: dict[str, EntryPoint] = {}
            for point in entry_points(group=self._group):
                if (other := offered.get(point.name)) is not None and other.value != point.value:
                    packages = " and ".join(sorted({_package(other), _package(point)}))
                    raise ProctorError(
                        f"the {self._what} {point.name!r} is offered by {packages}: uninstall one of them"
                    )
                offered[point.name] = point
            self._offered = offered
        return self._offered


def _package(point: EntryPoint) -> str:
    """Who offers an entry point, and what it is."""
    name = "an unknown package" if point.dist is None else point.dist.name
    return f"{name} ({point.value})"
