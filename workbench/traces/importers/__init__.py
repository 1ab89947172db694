"""Traces of other agents and of ours, read step by step in bounded memory. `open_trace` is the way in.

Here belongs one module a family of formats, each with `FORMATS`, `scan(path, format)` (what the file says about itself)
and `read(path, report, broken)` (its steps). They run nothing and write nothing.
"""
