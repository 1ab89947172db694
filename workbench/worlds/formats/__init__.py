"""Readers and writers of wire formats, standard library only: the one thing that the roles of a generator may share.

They know nothing of any world. They are copied next to an exported task's solution and graders.
"""
