"""How a run is kept: run folder, append-only journal, papermill runner, progress.

Here belongs what any room may use to write down what it did; nothing here knows tasks or models.
No other room is imported.
"""
