#!/bin/sh
# Everything that CI runs: ruff, the notebooks' form, then one pytest over the tests and the notebooks (nbval, profile
# smoke), with a real Docker engine where one can be had. WORKBENCH_TEST_ALL=1 adds the slow tests and runs the notebooks
# with their own defaults. Arguments go to pytest. Exit code 0 only when all of it passed.
set -u
cd "$(dirname "$0")/.." || exit 2
bin=$PWD/.venv/bin
scratch=$(mktemp -d "${TMPDIR:-/tmp}/workbench-test-XXXXXX")
engine=
failed=

finish() {
  code=$?
  trap - EXIT
  trap '' INT TERM
  [ -z "$engine" ] || sh scripts/docker_engine.sh stop >"$scratch/engine-stop.log" 2>&1 || cat "$scratch/engine-stop.log" >&2
  rm -rf "$scratch"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() {
  echo "== $*"
  "$@" || { failed="$failed [$*]"; echo "== FAILED: $*"; }
}

step "$bin/ruff" check --quiet .
step "$bin/ruff" format --check --quiet .
step "$bin/python" scripts/validate_notebooks.py

echo "== Docker engine (tests of the docker back end skip without one)"
# One that runs already is not ours to stop; one that we start is, even when starting stops half-way.
sh scripts/docker_engine.sh status >/dev/null 2>&1 || engine=started
exports=$(sh scripts/docker_engine.sh start)
case $? in
  0) eval "$exports" ;;
  3) echo "== no engine here: tests that need one will skip and say so" ;;
  *) failed="$failed [docker_engine.sh start]"; echo "== FAILED: the Docker engine could not be started" ;;
esac

echo "== Chromium (tests of the widgets in JupyterLab skip without one)"
sh scripts/install_browser.sh
case $? in
  0) ;;
  3) echo "== no Chromium here: tests that need one will skip and say so" ;;
  *) failed="$failed [install_browser.sh]"; echo "== FAILED: install_browser.sh" ;;
esac

# Runs of tests and notebooks go where they are thrown away; nothing of the caller's settings reaches them.
unset WORKBENCH_RUN WORKBENCH_PROGRESS WORKBENCH_PROFILE
export WORKBENCH_RESULTS="$scratch/results"
if [ -n "${WORKBENCH_TEST_ALL:-}" ]; then
  set -- -o timeout=1800 "$@"
else
  export WORKBENCH_PROFILE=smoke
  set -- -m "not slow" "$@"
fi
[ -z "$failed" ] || echo "== this run has failed already:$failed"
echo "== pytest"
"$bin/python" -m pytest tests notebooks --nbval-lax --nbval-current-env "$@"
code=$?
[ "$code" -ne 0 ] || [ -z "$failed" ] || code=1
exit "$code"
