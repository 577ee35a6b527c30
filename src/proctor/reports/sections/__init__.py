"""The report's sections, one module each: a store's numbers in, blocks out."""

from proctor.reports.sections.completion import consumption_section, provenance_section, statuses_section
from proctor.reports.sections.conditions import conditions_section, crossings_section, gains_section
from proctor.reports.sections.leaderboard import headline_section, published_section
from proctor.reports.sections.ranking import analysis_section, ranking_section
from proctor.reports.sections.shortcuts import audit_section
from proctor.reports.sections.subgroups import facets_section, orders_section

__all__ = [
    "analysis_section",
    "audit_section",
    "conditions_section",
    "consumption_section",
    "crossings_section",
    "facets_section",
    "gains_section",
    "headline_section",
    "orders_section",
    "provenance_section",
    "published_section",
    "ranking_section",
    "statuses_section",
]
