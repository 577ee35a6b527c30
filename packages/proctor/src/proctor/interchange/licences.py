"""Licences of data in the spelling of other programs: the Hugging Face Hub's identifiers, and addresses."""

from __future__ import annotations

import re

_CREATIVE_COMMONS = re.compile(r"cc-(?P<terms>by(?:-nc)?(?:-nd|-sa)?)-(?P<version>\d\.\d)")
_VERSIONS = {"cc-by": "2.0 2.5 3.0 4.0", "cc-by-sa": "3.0 4.0", "cc-by-nc": "2.0 3.0 4.0", "cc-by-nd": "4.0",
             "cc-by-nc-nd": "3.0 4.0", "cc-by-nc-sa": "2.0 3.0 4.0"}  # fmt: skip
_SPDX = {
    "mit": "MIT", "apache-2.0": "Apache-2.0", "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause",
    "mpl-2.0": "MPL-2.0", "gpl-2.0": "GPL-2.0-only", "gpl-3.0": "GPL-3.0-only", "lgpl-3.0": "LGPL-3.0-only",
    "agpl-3.0": "AGPL-3.0-only", "odc-by": "ODC-By-1.0", "odbl": "ODbL-1.0", "pddl": "PDDL-1.0", "unlicense": "Unlicense",
    "cdla-permissive-1.0": "CDLA-Permissive-1.0", "cdla-permissive-2.0": "CDLA-Permissive-2.0",
    "cdla-sharing-1.0": "CDLA-Sharing-1.0", "etalab-2.0": "etalab-2.0", "eupl-1.2": "EUPL-1.2", "isc": "ISC",
    "afl-3.0": "AFL-3.0", "artistic-2.0": "Artistic-2.0", "bsl-1.0": "BSL-1.0", "c-uda": "C-UDA-1.0", "ms-pl": "MS-PL",
}  # fmt: skip
_FOREIGN_NAMES = {"cc0": "cc0-1.0", "cc-zero": "cc0-1.0", "cc-0-1.0": "cc0-1.0", "apache-2": "apache-2.0", "cc-by": "cc",
                  "odc-by-1.0": "odc-by", "odbl-1.0": "odbl", "pddl-1.0": "pddl", "c-uda-1.0": "c-uda"}  # fmt: skip
HUB = {
    *_SPDX,
    "cc",
    "cc0-1.0",
    "unknown",
    *(f"{kind}-{one}" for kind, some in _VERSIONS.items() for one in some.split()),
}
"""The identifiers of licences of data on the Hugging Face Hub."""


def hub_licence(stated: str) -> str:
    """The Hub's identifier of a licence as people write it; "other" for one that the Hub has no identifier for.

    >>> hub_licence("CC BY 4.0"), hub_licence("CC-BY-NC-SA-4.0"), hub_licence("MIT License"), hub_licence("on request")
    ('cc-by-4.0', 'cc-by-nc-sa-4.0', 'mit', 'other')
    """
    name = re.sub(r"\b(?:licen[cs]e|international|version|the)\b|[,()]", " ", stated.casefold())
    name = name.replace("creative commons", "cc").replace("attribution", "by").replace("noncommercial", "nc")
    name = re.sub(r"[\s_-]+", "-", name.replace("sharealike", "sa").replace("noderivatives", "nd")).strip("-")
    name = re.sub(r"-(?:only|or-later)$", "", name)
    name = _FOREIGN_NAMES.get(name, name)
    return name if name in HUB else "other"


def licence_address(stated: str) -> str:
    """The address of a licence's text; the licence as stated if it is unknown.

    >>> licence_address("CC BY 4.0"), licence_address("on request")
    ('https://creativecommons.org/licenses/by/4.0/', 'on request')
    """
    name = hub_licence(stated)
    known = _CREATIVE_COMMONS.fullmatch(name)
    if known is not None:
        return f"https://creativecommons.org/licenses/{known['terms']}/{known['version']}/"
    if name == "cc0-1.0":
        return "https://creativecommons.org/publicdomain/zero/1.0/"
    return f"https://spdx.org/licenses/{_SPDX[name]}.html" if name in _SPDX else stated
