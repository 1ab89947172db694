"""Who learns: the pool and the rounds of the flywheel; rollouts for updates, advantages, DPPO, SFT, evaluation.

Here belongs what connects assignments, proposals, admission and the solver's rollouts over rounds.
May import every room above it in docs/architecture.md.
"""
