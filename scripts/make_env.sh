#!/bin/sh
# Makes .venv with all that `make flywheel` and `make test` need. Does nothing when pyproject.toml has not changed since.
# PyTorch: the CPU build where its index answers (no NVIDIA GPU here), else the build of the ordinary index.
set -eu
cd "$(dirname "$0")/.."
stamp=.venv/.workbench-env
want=$(cat pyproject.toml scripts/make_env.sh | cksum)
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && exit 0
python=$(sh scripts/find_python.sh)
echo "== environment: $python -> .venv (first time: a few minutes and about 6 GB of downloads)"
[ -x .venv/bin/python ] && .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.6'
install() { VIRTUAL_ENV="$PWD/.venv" .venv/bin/uv pip install --quiet "$@" -e '.[train,notebook,test,cluster]'; }
# uv's cache first: where an index forbids caching, a second environment would download everything again.
install --offline 2>/dev/null && found=cache || found=
if [ -n "$found" ]; then
  :
elif [ -e /proc/driver/nvidia/version ] || ! UV_HTTP_TIMEOUT=15 UV_HTTP_RETRIES=0 install --torch-backend cpu 2>/dev/null; then
  install
fi
printf '%s\n' "$want" >"$stamp"
echo "== environment ready: $(.venv/bin/python --version), $(.venv/bin/python -c 'import importlib.metadata as m; print("torch", m.version("torch"))')"
