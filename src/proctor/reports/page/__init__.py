"""The page: blocks in, one self-contained HTML text out."""

from proctor.reports.page.render import embedded_json, render_page

__all__ = ["embedded_json", "render_page"]
