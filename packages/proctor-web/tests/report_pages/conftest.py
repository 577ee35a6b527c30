"""The fixtures of tests of reports."""

from tests.support.report_fixtures import chromium, report, store, written  # noqa: F401
