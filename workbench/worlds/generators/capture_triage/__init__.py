"""Packet captures and logs of a data theft: rebuild the sessions, name the findings, recover what was taken."""
