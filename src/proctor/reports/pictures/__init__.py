"""The pictures of an analysis: its tables in, figures with captions and numbers out."""

from proctor.reports.pictures.files import all_pictures, write_pictures
from proctor.reports.pictures.performance import performance_pictures
from proctor.reports.pictures.picture import Picture
from proctor.reports.pictures.ranking import board_pictures, podium_picture, tau_picture, together_pictures

__all__ = [
    "Picture",
    "all_pictures",
    "board_pictures",
    "performance_pictures",
    "podium_picture",
    "tau_picture",
    "together_pictures",
    "write_pictures",
]
