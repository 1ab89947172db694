#!/bin/bash
# A plain script grades: no test framework, tens of milliseconds. -I: nothing of the workspace is imported.
exec python3 -I /tests/grade.py
