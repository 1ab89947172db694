"""A benchmark's leaderboard recomputed from raw prediction logs and held against what was claimed (domain 9.3)."""
