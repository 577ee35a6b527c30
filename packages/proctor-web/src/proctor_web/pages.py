"""Pages: templates rendered with what every page needs. All values are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from proctor_web.sessions import Visitor, form_token, keep_form_token, site_of, visitor_of
from proctor_web.site import Site
from proctor_web.strings import languages, preferred, text, text_or

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


def page(
    request: Request, name: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: object
) -> Response:
    """Renders the template `NAME.html`, a whole page (which extends `base.html`) or a fragment.

    Every template also has `t(key, count=…)`, the text of a key in the visitor's language, and `t_or(key, otherwise)`,
    which allows for an unknown key; `visitor` (None where nobody
    is logged in), `csrf`, `language`, `title` (of the site), `open_registration`, and `languages` with their names.
    """
    visitor = visitor_of(request)
    site, language = site_of(request), language_of(request, visitor)
    known = {
        "t": partial(text, language, more=site.texts),
        "t_or": partial(text_or, language, more=site.texts),
        "visitor": visitor,
        "csrf": form_token(request) if visitor is None else visitor.csrf,
        "language": language,
        "languages": {one: text(one, "language") for one in languages()},
        "title": site.title,
        "open_registration": site.open_registration,
    }
    html = _environment(site.templates).get_template(f"{name}.html").render({**known, **context})
    response = HTMLResponse(html, status, headers)
    if visitor is None:
        keep_form_token(request, response)
    return response


def prepare_pages(site: Site) -> None:
    """Reads all texts and compiles all templates, so that no visitor waits for it."""
    for language in languages():
        text(language, "language", more=site.texts)
        text(language, "language")
    environment = _environment(site.templates)
    for name in environment.list_templates():
        environment.get_template(name)


def confirm(
    request: Request, what: str, back: str, fields: Mapping[str, str] | None = None, **values: object
) -> Response:
    """A page that asks before something that people notice is done. The form sends the same request again, with its
    `fields` and `sure=yes`. `what` is the key of the action's text; those of the question and of what follows from it end
    in `_sure` and `_follows`. `values` are for both."""
    return page(
        request,
        "confirm",
        path=request.url.path,
        back=back,
        fields=dict(fields or {}),
        question=f"{what}_sure",
        follows=f"{what}_follows",
        action=what,
        values=values,
    )


def language_of(request: Request, visitor: Visitor | None) -> str:
    """The account's language, or the one that the browser prefers."""
    return preferred(request.headers.get("accept-language", "")) if visitor is None else visitor.language


@cache
def _environment(own: Path | None) -> Environment:
    return Environment(
        loader=FileSystemLoader([*([own] if own else []), FOLDER / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
