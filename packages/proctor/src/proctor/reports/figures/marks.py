"""The marks of figures: which colour and shape a condition, a series and a way to end has, everywhere.

A report, a plot from Python and a drawing in a file take them from here, so that the same colour never means two things.
Every colour has a contrast of at least 3 to the page, in light and in dark mode.
"""

from __future__ import annotations

from collections.abc import Sequence

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#a9487f", "#2a8bc0", "#b57800", "#7a5195", "#767676")
"""The colours of series on a white page: Okabe and Ito's, which all kinds of colour vision can tell apart, the light ones
darkened, and two more."""

DARK = ("#4aa3df", "#f08a45", "#3cc49a", "#dd9cc0", "#8bcdf3", "#f0bb4a", "#b08fd0", "#a3a3a3")
"""The same on a dark page."""

LIGHT_GREYS = ("#868e97", "#767c84", "#5c636b", "#3f454c")
"""The greys of what is missing, on a white page."""

DARK_GREYS = ("#6b7279", "#8a9199", "#a9b0b7", "#c6ccd2")
"""The same on a dark page."""

SHAPES = ("circle", "square", "up", "diamond", "down", "plus", "hexagon", "left", "right")
"""The shapes of series. There is one more than there are colours, so that series of one colour differ in shape."""

PLOT_SHAPES = ("o", "s", "^", "D", "v", "P", "h", "<", ">")
"""The same shapes as matplotlib names them."""

_CONDITIONS = (
    "video",
    "text-only",
    "black",
    "shuffled",
    "single-frame",
    "reversed",
    "other-video",
    "muted",
    "speech-only",
    "occlude-evidence",
    "occlude-elsewhere",
    "cut-evidence",
    "only-evidence",
)

RIGHT, WRONG = 0, 1
"""The numbers of right (blue) and of wrong (orange) answers."""

GREYS = (-1, -2, -3, -4)
"""The numbers of what is missing."""


def condition_numbers(conditions: Sequence[str]) -> dict[str, int]:
    """The number of each condition, from which colour and shape follow. A condition of Proctor has the same number
    whatever others there are; another one has the next free number, in the given order.

    >>> condition_numbers(["text-only", "video", "upside-down"])
    {'text-only': 1, 'video': 0, 'upside-down': 13}
    """
    others = [name for name in dict.fromkeys(conditions) if name not in _CONDITIONS]
    return {
        name: _CONDITIONS.index(name) if name in _CONDITIONS else len(_CONDITIONS) + others.index(name)
        for name in conditions
    }


def series_colour(number: int) -> str:
    """The name of the colour of the series with this number; negative numbers are greys.

    >>> series_colour(0), series_colour(9), series_colour(-2)
    ('s0', 's1', 'm1')
    """
    return f"s{number % len(LIGHT)}" if number >= 0 else f"m{(-number - 1) % len(LIGHT_GREYS)}"


def series_shape(number: int) -> str:
    """The shape of the series with this number.

    >>> series_shape(0), series_shape(8)
    ('circle', 'right')
    """
    return SHAPES[number % len(SHAPES)]


def plot_style(number: int) -> tuple[str, str]:
    """The colour and the marker of the series with this number, for matplotlib.

    >>> plot_style(1)
    ('#d55e00', 's')
    """
    return LIGHT[number % len(LIGHT)], PLOT_SHAPES[number % len(PLOT_SHAPES)]
