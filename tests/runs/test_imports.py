"""What an import loads: libraries that take seconds wait for the first call that needs them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "av", "cv2", "jinja2", "lancedb", "matplotlib", "onnxruntime", "openai", "pandas", "PIL", "pyarrow",
    "pydantic_ai", "sacrebleu", "scipy", "sentence_transformers", "sklearn", "statsmodels", "torch",
    "transformers", "typer",
}  # fmt: skip

loaded_by = """
import json, sys
import {module}
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


@pytest.mark.parametrize("module", ["proctor.runs", "proctor.core", "proctor.stats", "proctor.metrics"])
def test_an_import_loads_no_heavy_library(module: str) -> None:
    code = loaded_by.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(done.stdout)) == set()


def test_the_store_needs_neither_the_item_audit_nor_a_system() -> None:
    code = "import json, sys, proctor.runs.store\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.startswith("proctor.build")] == []
