"""One tiny judge for all that trains it further or compares its paths: it takes seconds to make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ordinal_task import OrdinalJudge, make_ordinal_judge


@pytest.fixture(scope="session")
def ordinal_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OrdinalJudge]:
    """In one thread, without a hub."""
    import torch
    from huggingface_hub import constants

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        yield make_ordinal_judge(tmp_path_factory.mktemp("ordinal"))
