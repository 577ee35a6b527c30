"""The table of units of clinical numbers, and their conversion.

Only units of the same quantity are converted. mg/dl is not converted to mmol/l, which requires the molar mass of the
substance, nor mEq/l to mmol/l, which requires its charge, nor gauge to mm. Months and years are not included, since
they have no fixed number of days.

It is a table, not a general library of units: for those "2 U" has no dimension, F is the farad and Fr unknown, and the
text that they would parse is a model's.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

QUANTITIES: dict[str, dict[str, float]] = {
    "number": {"": 1},
    "share": {"%": 1, "‰": 0.1},
    "length": {"nm": 1e-6, "µm": 1e-3, "mm": 1, "cm": 10, "dm": 100, "m": 1000, "in": 25.4, "Fr": 1 / 3},
    "area": {"mm²": 1, "cm²": 100, "m²": 1e6},
    "volume": {"µl": 1e-3, "ml": 1, "cl": 10, "dl": 100, "l": 1000, "mm³": 1e-3, "cm³": 1},
    "mass": {"ng": 1e-6, "µg": 1e-3, "mg": 1, "g": 1000, "kg": 1e6, "oz": 28349.523125, "lb": 453592.37},
    "time": {"ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400, "wk": 604800},
    "calendar": {"mo": 1, "yr": 12},
    "pressure": {"Pa": 1, "hPa": 100, "mbar": 100, "kPa": 1000, "bar": 1e5, "atm": 101325, "mmHg": 133.322387415,
                 "cmH₂O": 98.0665, "psi": 6894.757293168},
    "rate": {"/min": 1, "Hz": 60, "kHz": 6e4, "MHz": 6e7, "GHz": 6e10},
    "speed": {"mm/s": 1, "cm/s": 10, "m/s": 1000},
    "angle": {"°": 1, "rad": 57.29577951308232},
    "flow": {"ml/h": 1, "ml/min": 60, "l/h": 1000, "ml/s": 3600, "l/min": 6e4},
    "mass concentration": {"pg/ml": 1e-6, "ng/ml": 1e-3, "µg/l": 1e-3, "µg/dl": 1e-2, "mg/l": 1, "µg/ml": 1, "mg/dl": 10,
                           "mg/ml": 1000, "g/l": 1000, "g/dl": 1e4},
    "molar concentration": {"pmol/l": 1e-9, "nmol/l": 1e-6, "µmol/l": 1e-3, "mmol/l": 1, "mol/l": 1000},
    "equivalents": {"mEq/l": 1},
    "cell count": {"/l": 1, "/ml": 1e3, "/µl": 1e6, "/mm³": 1e6, "10⁹/l": 1e9, "10¹²/l": 1e12},
    "activity": {"mIU": 1e-3, "IU": 1, "kIU": 1e3},
    "activity concentration": {"mIU/l": 1e-3, "IU/l": 1, "mIU/ml": 1, "IU/ml": 1e3},
    "dose by weight": {"µg/kg": 1e-3, "mg/kg": 1, "g/kg": 1000},
    "dose rate": {"µg/h": 1, "µg/min": 60, "mg/h": 1000, "mg/min": 6e4},
    "dose rate by weight": {"µg/kg/h": 1, "µg/kg/min": 60, "mg/kg/h": 1000, "mg/kg/min": 6e4},
    "volume by weight": {"ml/kg": 1},
    "body mass index": {"kg/m²": 1},
    "energy": {"mJ": 1e-3, "J": 1, "cal": 4.184, "kJ": 1000, "kcal": 4184},
    "power": {"mW": 1e-3, "W": 1, "kW": 1000},
    "voltage": {"µV": 1e-6, "mV": 1e-3, "V": 1, "kV": 1000},
    "current": {"µA": 1e-6, "mA": 1e-3, "A": 1},
    "absorbed dose": {"mGy": 1e-3, "cGy": 1e-2, "Gy": 1},
    "equivalent dose": {"µSv": 1e-6, "mSv": 1e-3, "Sv": 1},
    "attenuation": {"HU": 1},
    "level": {"dB": 1},
    "pixels": {"px": 1},
    "temperature": {"°C": 1, "K": 1, "°F": 5 / 9},
}  # fmt: skip
"""By quantity, the size of each unit in the base unit of the quantity."""

_ZERO = {"K": -273.15, "°F": -160 / 9}  # 0 of this unit in °C
_PREFIXES = {"nm": "nano", "µm": "micro", "mm": "milli", "cm": "centi", "dm": "deci", "m": ""}
WORDS: dict[str, tuple[str, ...]] = {
    "%": ("percent", "per cent", "pct", "percentage points"),
    "in": ("inch", "inches"),
    "Fr": ("french", "F", "Ch", "charrière", "charriere"),
    **{unit: (f"{prefix}meter", f"{prefix}meters", f"{prefix}metre", f"{prefix}metres") for unit, prefix in _PREFIXES.items()},
    "µl": ("microliter", "microliters", "microlitre", "microlitres"),
    "ml": ("milliliter", "milliliters", "millilitre", "millilitres", "cc", "ccm"),
    "dl": ("deciliter", "deciliters", "decilitre", "decilitres"),
    "l": ("liter", "liters", "litre", "litres"),
    "µg": ("microgram", "micrograms"),
    "mg": ("milligram", "milligrams"),
    "g": ("gram", "grams", "gramme", "grammes"),
    "kg": ("kilogram", "kilograms", "kilo", "kilos"),
    "oz": ("ounce", "ounces"),
    "lb": ("lbs", "pound", "pounds"),
    "ms": ("millisecond", "milliseconds", "msec"),
    "s": ("sec", "secs", "second", "seconds", "秒"),
    "min": ("mins", "minute", "minutes", "分钟"),
    "h": ("hr", "hrs", "hour", "hours", "小时"),
    "d": ("day", "days", "天"),
    "wk": ("week", "weeks", "wks", "周"),
    "mo": ("month", "months", "个月"),
    "yr": ("year", "years", "yrs", "岁"),
    "mmHg": ("mm Hg", "torr", "millimeters of mercury", "millimetres of mercury"),
    "cmH₂O": ("cm H₂O", "cm of water"),
    "/min": ("bpm", "beats/min", "beats per minute", "breaths/min", "breaths per minute", "per minute", "min⁻¹", "1/min"),
    "Hz": ("hertz", "/s", "per second"),
    "MHz": ("megahertz",),
    "°": ("deg", "degree", "degrees"),
    "°C": ("C", "deg C", "degrees C", "degrees celsius", "degree celsius", "celsius", "℃", "摄氏度"),
    "°F": ("F", "deg F", "degrees F", "degrees fahrenheit", "fahrenheit", "℉"),
    "K": ("kelvin",),
    "IU": ("U", "unit", "units", "international units"),
    "mIU": ("mU",),
    "IU/l": ("U/l",),
    "IU/ml": ("U/ml",),
    "mIU/l": ("mU/l",),
    "mIU/ml": ("mU/ml",),
    "/µl": ("cells/µl",),
    "J": ("joule", "joules"),
    "W": ("watt", "watts"),
    "V": ("volt", "volts"),
    "HU": ("hounsfield units", "hounsfield"),
    "dB": ("decibel", "decibels"),
    "px": ("pixel", "pixels"),
    "mm": ("毫米",),
    "cm": ("厘米",),
    "mm²": ("square millimeters", "square millimetres", "sq mm"),
    "cm²": ("square centimeters", "square centimetres", "sq cm"),
    "cm³": ("cubic centimeters", "cubic centimetres"),
}  # fmt: skip
for _unit, _prefix in _PREFIXES.items():  # "mm" and "cm" have words of two languages
    WORDS[_unit] = (*WORDS.get(_unit, ()), *(f"{_prefix}{word}" for word in ("meter", "meters", "metre", "metres")))


def names_of(symbol: str) -> tuple[str, ...]:
    """The symbol and the names of a unit.

    >>> names_of("l/h")
    ('l/h', 'l/hour', 'l/hr')
    """
    ends = {"/min": ("/minute",), "/h": ("/hour", "/hr")}
    longer = [symbol.removesuffix(end) + one for end, some in ends.items() if symbol.endswith(end) for one in some]
    return (symbol, *WORDS.get(symbol, ()), *longer)


@dataclass(frozen=True)
class Unit:
    """A unit with its quantity, and its conversion to the base unit of the quantity."""

    symbol: str
    quantity: str
    factor: float
    zero: float = 0.0

    def to(self, other: Unit, number: float) -> float:
        """Convert a number in this unit to another unit of the same quantity.

        >>> unit_of("°F").to(unit_of("°C"), 98.6)
        37.0
        """
        if self == other:
            return number
        return round_off((number * self.factor + self.zero - other.zero) / other.factor)


def round_off(number: float) -> float:
    """A number rounded to 12 significant digits, which removes rounding errors of conversions.

    >>> round_off(0.1 * 3)
    0.3
    """
    return float(f"{number:.12g}")


@lru_cache(maxsize=1)
def known_units() -> MappingProxyType[str, tuple[Unit, ...]]:
    """The units by spelling (see `spelling`); several if an abbreviation is ambiguous ("F")."""
    by_spelling: dict[str, list[Unit]] = {}
    for quantity, units in QUANTITIES.items():
        for symbol, factor in units.items():
            unit = Unit(symbol, quantity, factor, _ZERO.get(symbol, 0.0))
            for name in names_of(symbol):
                by_spelling.setdefault(spelling(name), []).append(unit)
    for name, named in list(by_spelling.items()):  # case-insensitive, unless another unit has this spelling
        if name.casefold() not in by_spelling:
            by_spelling[name.casefold()] = named
    return MappingProxyType({name: tuple(named) for name, named in by_spelling.items()})


def units_named(text: str) -> tuple[Unit, ...]:
    """The units that a text may denote; empty for an unknown unit.

    >>> [unit.quantity for unit in units_named("F")]
    ['length', 'temperature']
    """
    key = spelling(text)
    return known_units().get(key) or known_units().get(key.casefold(), ())


def unit_of(text: str) -> Unit:
    """The (first) unit with this spelling. Raises `ValueError` for an unknown unit.

    >>> unit_of("mcg").symbol, unit_of("CM").symbol, unit_of("mm^2").quantity
    ('µg', 'cm', 'area')
    """
    units = units_named(text)
    if not units:
        symbols = ", ".join(symbol for some in QUANTITIES.values() for symbol in some if symbol)
        raise ValueError(f"{text!r} is no known unit: expected one of {symbols}")
    return units[0]


def spelling(text: str) -> str:
    """The normalised text of a unit: µ as u, superscripts as digits, "per" as "/", without whitespace and carets."""
    plain = unicodedata.normalize("NFKC", text.replace("⁻¹", "-1")).replace("μ", "u").replace("µ", "u")
    plain = re.sub(r"\bmcg\b", "ug", plain, flags=re.IGNORECASE)
    plain = re.sub(r"\s?(?:/|\bper\b)\s?", "/", plain.strip())
    return re.sub(r"[\s^·*]+", "", plain).removesuffix(".")
