"""Containers: systems that come as images, asked question by question through a gateway. It knows no task."""
