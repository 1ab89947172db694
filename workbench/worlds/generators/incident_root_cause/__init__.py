"""Metrics, logs, changes and topology of a bad day: which change or fault began each incident, how far it spread, can it be undone."""
