#!/bin/sh
# Prints the path of a working Python >= 3.12 (newest tested first), or says what it looked for and exits 1.
# A name on PATH is not enough: pyenv's `python3.12` shim exists and fails, so each candidate is run.
set -u
looked=""
# Prints why "$1" will not do: its last line of errors, or its version.
check() {
  command -v "$1" >/dev/null || { echo "not there"; return 1; }
  "$1" -c 'import sys; sys.version_info >= (3, 12) or sys.exit("is Python %d.%d" % sys.version_info[:2]); import venv, ssl' 2>&1 >/dev/null
}
try() {
  if why=$(check "$1"); then
    # the real file, not a shim, so that a venv made from it keeps working
    "$1" -c 'import os, sys; print(os.path.realpath(sys.executable))'
    exit 0
  fi
  looked="$looked
  $1: $(printf '%s\n' "$why" | tail -n 1)"
}
[ -n "${PYTHON:-}" ] && try "$PYTHON"
pyenv_root=${PYENV_ROOT:-$HOME/.pyenv}
for version in 3.12 3.13 3.14; do
  try "python$version"
  for dir in "$pyenv_root"/versions/$version*/bin /opt/python*/bin /usr/local/bin "$HOME"/.local/share/uv/python/cpython-$version*/bin "${CONDA_PREFIX:-/nonexistent}/bin"; do
    [ -x "$dir/python$version" ] && try "$dir/python$version"
  done
done
try python3
try python
echo "No working Python >= 3.12 found. Each of these was run, and this came back:$looked
Install one (for example 'pyenv install 3.12', 'apt install python3.12-venv' or 'conda create -n workbench python=3.12'), or name it: make env PYTHON=/path/to/python3.12" >&2
exit 1
