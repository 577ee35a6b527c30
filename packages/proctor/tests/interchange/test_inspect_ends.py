"""The logs that we write say in Inspect's own fields what became of each call, what it cost, and what judges said."""

from __future__ import annotations

from pathlib import Path

from tests.support.foreign import foreign


def test_a_log_has_errors_reasons_usage_and_judges(tmp_path: Path) -> None:
    found = foreign("tests.support.foreign_inspect", tmp_path, "written")
    assert found["status"] == "cancelled"  # eight of sixteen items were asked
    assert found["completed"] == [7, 16]
    assert found["errors"] == [None, None, "HTTP 500: out of memory", *[None] * 5]
    stops = ["stop", "max_tokens", None, "content_filter", "model_length", "unknown", "stop", "stop"]
    assert found["stops"] == stops
    assert found["limits"] == [*[None] * 6, "time", None]
    assert found["models"] == ["openai/gpt-5.2"]
    total = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42, "input_tokens_cache_read": 9}
    assert {name: found["total"][name] for name in total} == total
    assert found["judged"] == {"accuracy[three-level[gpt]]": 1.0, "accuracy[human:ana]": 0.0}
    assert "accuracy[three-level[gpt]]" in found["scorers"]
