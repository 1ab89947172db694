"""Who designs environments: assignments from rollouts, and the methods that answer them.

Here belongs what turns a pool and its rollouts into new task directories. May import admission and what is below.
"""
