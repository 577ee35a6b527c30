"""The blocks of a large report: whole, in order, within their limits, and small."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from proctor.reports import packing
from proctor.reports.packing import BrowserData, compact, pack

LIMIT = 10**9


def unpacked(data: BrowserData) -> tuple[list[Any], dict[int, Any]]:
    """The items and judgements of all blocks, as the page's script reads them."""
    items, judgements = [json.loads(one) for one in data.items], dict(data.judgements)
    for block in data.blocks:
        part = json.loads(gzip.decompress(base64.b64decode(block)))
        items += part["items"]
        judgements |= {int(number): judgement for number, judgement in part["judgements"].items()}
    return items, judgements


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PLAIN", 1000)


TEXTS = [compact({"id": f"q{number}", "text": f"</script> \ud800 ü {number}" * 3}) for number in range(100)]
VOTES = {number: {"judge": "j", "reply": {"why": f"reply {number}"}} for number in range(50)}
VOTES_OF = [{number // 2} for number in range(100)]


def test_few_items_are_plain() -> None:
    data = pack({}, TEXTS[:5], {}, limit=LIMIT)
    assert (data.items, data.blocks, data.kept) == (TEXTS[:5], (), 5)


@pytest.mark.usefixtures("small")
def test_blocks_hold_all_items_in_order_and_each_judgement_once() -> None:
    data = pack({}, TEXTS, VOTES, VOTES_OF, limit=LIMIT)
    assert len(data.blocks) > 3
    assert (data.items, data.kept) == ((), 100)
    items, judgements = unpacked(data)
    assert [item["id"] for item in items] == [f"q{number}" for number in range(100)]
    assert judgements == VOTES
    assert "�" in items[0]["text"] or "?" in items[0]["text"]  # half of a pair is no text
    assert data == pack({}, TEXTS, VOTES, VOTES_OF, limit=LIMIT)


@pytest.mark.usefixtures("small")
def test_whole_blocks_beyond_the_limit_are_left_out() -> None:
    whole = pack({}, TEXTS, VOTES, VOTES_OF, limit=LIMIT)
    cut = pack({}, TEXTS, VOTES, VOTES_OF, limit=sum(map(len, whole.blocks[:2])))
    assert cut.blocks == whole.blocks[:2]
    assert 0 < cut.kept < 100
    assert len(unpacked(cut)[0]) == cut.kept
    assert pack({}, TEXTS, VOTES, VOTES_OF, limit=10).kept == 0


def test_no_items_are_no_block() -> None:
    assert pack({"runs": []}, (), {}, limit=LIMIT) == BrowserData({"runs": []})


@pytest.mark.usefixtures("small")
def test_an_item_larger_than_a_block_is_one() -> None:
    items = [compact("x" * 5000), compact("y"), compact("z" * 5000)]
    assert unpacked(pack({}, items, {}, limit=LIMIT))[0] == ["x" * 5000, "y", "z" * 5000]
