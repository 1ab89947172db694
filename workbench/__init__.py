"""A research workbench for reinforcement-learning environments of terminal agents.

Rooms are sub-packages; imports between them go downward only (docs/architecture.md).
Importing this package, or any room, imports neither torch nor harbor nor litellm.
"""

__version__ = "0.1.0"
