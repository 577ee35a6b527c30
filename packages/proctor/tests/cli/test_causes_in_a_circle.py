"""An error that is the cause of its own cause ends the program with its line; the program looked for Ctrl-C for ever."""

from __future__ import annotations

from proctor.cli.main import was_interrupted


def test_causes_in_a_circle_are_no_interruption() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert not was_interrupted(first)
    second.__cause__ = KeyboardInterrupt()
    assert was_interrupted(first)
