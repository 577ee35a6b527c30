"""From the values of a medical image to grey levels. Imports nothing of Proctor, so that `scan_process` starts fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PIXELS = 40_000_000
"""The limit for one picture; the largest mammograms have about 30 million."""

_WHITE = 255.0
BLOCK = 1_000_000
"""Values that are processed at once: each takes 8 bytes, several times."""
_FLATTEST = 100.0  # how many times longer than wide a pixel may be


class RefusedScanError(Exception):
    """An error in a file, with a message of our own: those of libraries may quote personal data."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found = found
        self.expected = expected


@dataclass(frozen=True)
class ScanPicture:
    """Grey levels (height × width) or colours (height × width × 3), and the width over the height of a pixel."""

    pixels: NDArray[Any]
    aspect: float = 1.0


@dataclass(frozen=True)
class Rescale:
    """Stored values become `slope` · value + `intercept`."""

    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, values: Any) -> Any:
        return values * self.slope + self.intercept


@dataclass(frozen=True)
class GreyWindow:
    """The range of values from black to white: DICOM PS3.3 C.11.2.1.2 (`linear`) and C.11.2.1.3 (`sigmoid`, and
    `linear_exact`, in which the window reaches from centre − width / 2 to centre + width / 2)."""

    centre: float
    width: float
    function: str = "linear_exact"

    def shares(self, values: Any) -> Any:
        """Maps values to shares from black (0) to white (1)."""
        import numpy as np

        if self.function == "sigmoid":
            power = np.clip(-4.0 * (values - self.centre) / self.width, -700.0, 700.0)
            return 1.0 / (1.0 + np.exp(power))
        centre, width = (
            (self.centre - 0.5, self.width - 1.0) if self.function == "linear" else (self.centre, self.width)
        )
        if width == 0.0:
            return (values > centre).astype(np.float64)
        return np.clip((values - centre) / width + 0.5, 0.0, 1.0)

    def check(self) -> None:
        """Raises `RefusedScanError` for a window that shows nothing."""
        import numpy as np

        least = 1.0 if self.function == "linear" else 0.0
        if self.function not in {"linear", "linear_exact", "sigmoid"}:
            raise RefusedScanError("an unknown VOI LUT function", "LINEAR, LINEAR_EXACT or SIGMOID")
        if not (np.isfinite(self.centre) and np.isfinite(self.width)) or self.width < least or self.width <= 0.0:
            words = "at least 1" if least else "more than 0"
            raise RefusedScanError(f"a window of width {self.width:g}", f"a width of {words}")


def grey(values: NDArray[Any], rescale: Rescale, window: GreyWindow | None, padding: tuple[float, float] | None) -> Any:
    """The grey levels, 0 to 255, of a picture of numbers. Without a window the whole range of values is shown, except
    stored values from `padding`'s first to its last. NaN is black."""
    import numpy as np

    if window is None:
        window = _whole_range(values, rescale, padding)
    window.check()
    out = np.empty(values.shape, dtype=np.uint8)
    flat, target = values.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        shares = window.shares(rescale(flat[start : start + BLOCK].astype(np.float64)))
        target[start : start + BLOCK] = np.rint(_WHITE * np.nan_to_num(shares, nan=0.0)).astype(np.uint8)
    return out


def _whole_range(values: NDArray[Any], rescale: Rescale, padding: tuple[float, float] | None) -> GreyWindow:
    import numpy as np

    flat, ends = values.reshape(-1), []
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK].astype(np.float64)
        kept = np.isfinite(part)
        if padding is not None:
            kept &= (part < padding[0]) | (part > padding[1])
        if kept.any():
            ends += [part[kept].min(), part[kept].max()]
    low, high = sorted(rescale(end) for end in (min(ends, default=0.0), max(ends, default=0.0)))
    if high == low:  # one value everywhere: black
        return GreyWindow(low + 1.0, 1.0)
    return GreyWindow((low + high) / 2, high - low)


def checked_aspect(wide: float, high: float) -> float:
    """Width over height of a pixel; 1 for invalid spacings."""
    import numpy as np

    if not (np.isfinite(wide) and np.isfinite(high)) or wide <= 0.0 or high <= 0.0:
        return 1.0
    aspect = wide / high
    if not 1 / _FLATTEST <= aspect <= _FLATTEST:
        raise RefusedScanError(f"pixels {aspect:.3g} times as wide as high", f"{1 / _FLATTEST:g} to {_FLATTEST:g}")
    return float(aspect)
