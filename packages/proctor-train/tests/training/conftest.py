"""One tiny judge for all that trains it further or compares its paths: it takes seconds to make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ordinal_task import OrdinalJudge, make_ordinal_judge


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """All is done in one thread, and no hub is asked."""
    import torch
    from huggingface_hub import constants

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        yield


@pytest.fixture(scope="session")
def ordinal_judge(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> OrdinalJudge:
    """It has learned a little of the ordinal task."""
    del one_thread
    return make_ordinal_judge(tmp_path_factory.mktemp("ordinal"))
