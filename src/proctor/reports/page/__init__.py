"""The page: blocks in, one self-contained HTML text out."""

from proctor.reports.page.render import Browser, embedded_json, render_page
from proctor.reports.page.writing import write_whole

__all__ = ["Browser", "embedded_json", "render_page", "write_whole"]
