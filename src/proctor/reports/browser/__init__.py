"""The browser of items: what the page holds to browse in."""

from proctor.reports.browser.content import Content, Limits, Shown, Thumbnails, as_text
from proctor.reports.browser.stored import browser_data

__all__ = ["Content", "Limits", "Shown", "Thumbnails", "as_text", "browser_data"]
