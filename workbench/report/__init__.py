"""What is shown: statistics, tables, figures, widgets. Reads records only; runs nothing.

May import runs, traces, tasks.
"""
