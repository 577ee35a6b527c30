"""Challenges: submissions, a queue with leases, sealed references, boards and receipts. It knows no task."""
