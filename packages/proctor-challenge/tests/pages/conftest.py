"""The fixtures of tests of pages."""

from tests.support.web_fixtures import _one_loop, _own_cache, _quick_hashes, review, without_threads  # noqa: F401
