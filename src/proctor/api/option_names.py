"""The names that a shell completes: nothing is loaded before somebody asks."""

from proctor.core import BENCHMARKS


def system_names() -> list[str]:
    """The built-in systems and methods."""
    from proctor.systems import SYSTEMS

    return SYSTEMS.names()


def judge_names() -> list[str]:
    """The judges of stored answers."""
    from proctor.judges import JUDGES

    return JUDGES.names()


def condition_names() -> list[str]:
    """The conditions."""
    from proctor.media import CONDITIONS

    return CONDITIONS.names()


def validator_names() -> list[str]:
    """What can be validated."""
    from proctor.core import VALIDATORS

    return sorted({*VALIDATORS.names(), *BENCHMARKS.names()})


def benchmark_names() -> list[str]:
    """The benchmarks that are installed."""
    return BENCHMARKS.names()
