"""Numbers with units: the table against other tables, conversions by hand, tolerances, hostile numbers."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from pydantic import ValidationError
from scipy import constants

from proctor.core import ParseError
from proctor.core.formats import QuantityFormat
from proctor.core.formats.units import QUANTITIES, names_of, spelling, unit_of, units_named

SI = {
    "in": ("m", constants.inch),
    "lb": ("kg", constants.pound),
    "oz": ("kg", constants.oz),
    "l": ("m³", constants.liter),
    "min": ("s", constants.minute),
    "h": ("s", constants.hour),
    "d": ("s", constants.day),
    "wk": ("s", constants.week),
    "atm": ("Pa", constants.atm),
    "bar": ("Pa", constants.bar),
    "psi": ("Pa", constants.psi),
    "cal": ("J", constants.calorie),
    "cmH₂O": ("Pa", constants.g * 10),  # a metre of water of 1,000 kg/m³ is 1,000 · g
}
"""Units in SI units, from SciPy's table of constants (CODATA, NIST)."""


@pytest.mark.parametrize("symbol", SI)
def test_factors_are_those_of_scipy(symbol: str) -> None:
    base, wanted = SI[symbol]
    if base == "m³":  # a cubic metre is 1,000 l
        assert wanted == pytest.approx(1 / 1000)
        assert unit_of("l").to(unit_of("cm³"), 1) == 1000
        return
    assert unit_of(symbol).to(unit_of(base), 1) == pytest.approx(wanted, rel=1e-9)


def test_the_millimetre_of_mercury_is_the_conventional_one() -> None:
    assert unit_of("mmHg").to(unit_of("Pa"), 1) == pytest.approx(13595.1 * constants.g / 1000, rel=1e-9)


@pytest.mark.parametrize("celsius", [-40.0, 0.0, 36.6, 37.0, 100.0])
def test_temperatures_are_those_of_scipy(celsius: float) -> None:
    scales: tuple[tuple[Literal["Fahrenheit", "Kelvin"], str], ...] = (("Fahrenheit", "°F"), ("Kelvin", "K"))
    for name, symbol in scales:
        said = float(constants.convert_temperature(celsius, "Celsius", name))
        assert unit_of(symbol).to(unit_of("°C"), said) == pytest.approx(celsius, abs=1e-9)
        assert unit_of("°C").to(unit_of(symbol), celsius) == pytest.approx(said, abs=1e-9)


BY_HAND = [
    ("mm", "0.8 cm", 8.0),
    ("mm", "9 Fr", 3.0),
    ("kPa", "120 mmHg", 15.9986864898),
    ("mg", "250 mcg", 0.25),
    ("µg/kg/min", "0.3 mg/kg/h", 5.0),
    ("mg/dl", "0.9 g/l", 90.0),
    ("mmol/l", "5500 µmol/l", 5.5),
    ("l/min", "75 ml/s", 4.5),
    ("s", "1 h 1 min 5 s", 3665.0),
    ("wk", "21 days", 3.0),
    ("/min", "1.2 Hz", 72.0),
    ("10^9/l", "7200/µl", 7.2),
    ("10⁹/l", "7.2 × 10^9/L", 7.2),
    ("IU/l", "0.05 IU/ml", 50.0),
    ("cm²", "350 mm^2", 3.5),
    ("ml", "3 cc", 3.0),
    ("%", "55 percent", 55.0),
    ("", "a score of 7", 7.0),
]


@pytest.mark.parametrize(("unit", "text", "value"), BY_HAND)
def test_conversions_by_hand(unit: str, text: str, value: float) -> None:
    assert QuantityFormat(unit=unit).parse(text) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("mmol/l", "99 mg/dl"),  # takes the substance's molar mass
        ("mmol/l", "2 mEq/l"),  # takes its charge
        ("d", "2 months"),
        ("mm", "14 G"),
        ("mmHg", "120/80 mmHg"),
        ("mg", "3 mg/kg"),
        ("m", "5 mm/s"),
    ],
)
def test_another_quantity_is_never_converted(unit: str, text: str) -> None:
    with pytest.raises(ParseError):
        QuantityFormat(unit=unit).parse(text)


def test_every_unit_is_found_by_each_of_its_names_and_no_two_share_a_symbol() -> None:
    symbols = [symbol for some in QUANTITIES.values() for symbol in some]
    assert len(symbols) == len(set(map(spelling, symbols)))
    for quantity, some in QUANTITIES.items():
        for symbol in some:
            for name in names_of(symbol):
                assert quantity in {unit.quantity for unit in units_named(name)}, name
            if symbol:
                wanted = QuantityFormat(unit=symbol)
                assert wanted.parse(f"Answer: 12.5 {symbol}") == 12.5, symbol
                assert wanted.read_reference(wanted.write(12.5)) == (12.5,)


def test_an_unknown_unit_lists_the_known_ones() -> None:
    with pytest.raises(ValidationError, match=re.escape("'furlong' is no known unit: expected one of %, ‰, nm, µm")):
        QuantityFormat(unit="furlong")
    assert QuantityFormat(unit="mcg").unit == "µg"


def test_tolerances_reach_to_their_end_and_no_further() -> None:
    form = QuantityFormat(unit="mm", tolerance=2)
    assert form.match(10.0, form.parse("1.2 cm"))
    assert not form.match(10.0, 12.001)
    share = QuantityFormat(unit="mm", relative=0.1)
    assert share.match(-20.0, -22.0)
    assert not share.match(20.0, 22.1)
    both = QuantityFormat(unit="mm", tolerance=1, relative=0.1)
    assert both.match(5.0, 6.0)
    assert both.match(50.0, 55.0)
    assert QuantityFormat(unit="mm").match(0.3, QuantityFormat(unit="mm").parse("0.03 cm"))
    assert QuantityFormat().match(0.0, 0.0)
    assert not QuantityFormat().match(0.0, 1e-6)


@pytest.mark.parametrize("text", ["1e999 mm", "9" * 400 + " mm", "nan mm", "inf", "10^400 mm", "-1e99 mm", "½ mm"])
def test_hostile_numbers_state_nothing(text: str) -> None:
    with pytest.raises(ParseError):
        QuantityFormat(unit="mm").parse(text)
