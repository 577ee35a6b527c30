"""What several methods are tried on."""

from __future__ import annotations

import pytest

from tests.support.key_frame_model import Instances, made_instances


@pytest.fixture(scope="session")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Instances:
    """Simulated instances of four and six frames, whose questions speak of resuscitation."""
    return made_instances(tmp_path_factory.mktemp("instances"))
