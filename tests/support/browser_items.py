"""What a report's browser shows, plain or in blocks, as one structure."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def blocks_of(page: str) -> list[str]:
    """The packed blocks of a page."""
    return re.findall(r'<script class="block" type="application/gzip">(.*?)</script>', page)


def data_of(page: str) -> Any:
    """The data of a page with all items and judgements, as its script reads them."""
    (head,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    data = json.loads(head)
    judgements = dict(enumerate(data["judgements"]))
    for block in blocks_of(page):
        part = json.loads(gzip.decompress(base64.b64decode(block)))
        data["items"] += part["items"]
        own = {int(number): judgement for number, judgement in part["judgements"].items()}
        assert not own.keys() & judgements.keys(), "each judgement stands in one block"
        judgements |= own
    data["judgements"] = [judgements[number] for number in range(len(judgements))]
    return data
