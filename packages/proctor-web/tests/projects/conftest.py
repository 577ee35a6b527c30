"""The fixtures of tests of projects."""

from tests.support.pipeline_fixtures import film, one_source, server  # noqa: F401
