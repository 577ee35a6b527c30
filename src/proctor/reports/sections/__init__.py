"""The report's sections, one module each: a store's numbers in, blocks out."""

from proctor.reports.sections.analysis import analysis_of, analysis_section
from proctor.reports.sections.auditing import audit_section
from proctor.reports.sections.conditions import conditions_section
from proctor.reports.sections.consumption import consumption_section
from proctor.reports.sections.crossings import crossings_section
from proctor.reports.sections.facets import facets_section
from proctor.reports.sections.gains import gains_section
from proctor.reports.sections.headline import headline_section
from proctor.reports.sections.orders import orders_section
from proctor.reports.sections.provenance import facts, provenance_section
from proctor.reports.sections.published import published_section
from proctor.reports.sections.ranking import ranking_section
from proctor.reports.sections.statuses import statuses_section

__all__ = [
    "analysis_of",
    "analysis_section",
    "audit_section",
    "conditions_section",
    "consumption_section",
    "crossings_section",
    "facets_section",
    "facts",
    "gains_section",
    "headline_section",
    "orders_section",
    "provenance_section",
    "published_section",
    "ranking_section",
    "statuses_section",
]
