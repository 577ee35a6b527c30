"""SciPy's special functions, imported at the first call: importing SciPy takes longer than importing Proctor, and most
commands do not need it."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

__all__ = [
    "betaincinv",
    "chdtrc",
    "chdtri",
    "expit",
    "fdtrc",
    "gammaln",
    "logit",
    "nctdtr",
    "ndtr",
    "ndtri",
    "psi",
    "stdtr",
    "stdtrit",
]

if TYPE_CHECKING:
    from scipy.special import (
        betaincinv,
        chdtrc,
        chdtri,
        expit,
        fdtrc,
        gammaln,
        logit,
        nctdtr,
        ndtr,
        ndtri,
        psi,
        stdtr,
        stdtrit,
    )
else:

    def _deferred(name):
        def call(*arguments, **options):
            import scipy.special

            return getattr(scipy.special, name)(*arguments, **options)

        call.__name__ = call.__qualname__ = name
        return call

    betaincinv, chdtrc, chdtri, expit, fdtrc, gammaln, logit, nctdtr, ndtr, ndtri, psi, stdtr, stdtrit = map(
        _deferred, __all__
    )


def prepare_intervals() -> None:
    """Start to import SciPy in a thread, for callers that first wait for a database. Earlier calls wait for the import.

    >>> prepare_intervals()
    """
    Thread(target=import_module, args=("scipy.special",), name="import scipy.special").start()
