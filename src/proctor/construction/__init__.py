"""From videos, tracks and recordings to questions with references."""
