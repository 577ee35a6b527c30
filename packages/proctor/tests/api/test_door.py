"""`import proctor` costs nothing, and offers what it says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import proctor
from proctor import api, core

SCRIPT = """
import json, sys
before = set(sys.modules)
import proctor
from proctor import api, core
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def test_the_import_loads_nothing_but_the_standard_library() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout)) - {"proctor"}
    assert loaded <= sys.stdlib_module_names


@pytest.mark.parametrize("name", proctor.__all__)
def test_what_is_offered_is_there(name: str) -> None:
    assert getattr(proctor, name) is not None
    assert name in dir(proctor)


def test_functions_stay_functions_whatever_is_imported() -> None:
    import proctor.audits.items
    import proctor.reports
    import proctor.runs

    for name in ("audit", "report", "run", "results", "rank", "compare", "metric", "system"):
        assert callable(getattr(proctor, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'proctor' has no attribute 'evaluate'"):
        _ = proctor.evaluate  # type: ignore[attr-defined]


def test_the_api_is_what_the_import_offers_and_nothing_else() -> None:
    """What only commands need stands in `proctor.shell`."""
    beside = set(core.__all__) | {"__version__", "formats", "stats"}
    assert set(api.__all__) == set(proctor.__all__) - beside
    assert len(api.__all__) <= 44
    for name in api.__all__:
        assert getattr(api, name) is getattr(proctor, name)
