#!/bin/sh
# Fraction verifier (managed: copy it as it is, put the checks into tests/test_*.py).
#
# Writes  /logs/verifier/reward.txt   passed / collected, one number in [0, 1]
#         /logs/verifier/ctrf.json    every test with its status (CTRF)
# Only a plain pass counts. Failed, errored (set-up and tear-down too), skipped, xfailed and xpassed tests do not,
# and all of them stay in the denominator.
# No reward is written, and the exit status is not 0, when no test was collected, a test file could not be imported,
# or pytest did not get to the end: a verifier that did not run is not a score of 0.
#
# What stands in the working folder (conftest.py, pytest.ini, sitecustomize.py, __pycache__) and in PYTHON* or PYTEST_*
# variables has no effect, and what the tests left running is ended before the reward is written.
# Tests run with this folder as the working directory: name the agent's files by absolute path.
set -u
logs=/logs/verifier
unset PYTEST_ADDOPTS PYTEST_PLUGINS PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONPYCACHEPREFIX LD_PRELOAD
export LC_ALL=C.UTF-8

fail() { echo "verifier: $1" >&2; exit "${2:-70}"; }

tests=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || fail "cannot enter the folder of $0"
cd -- "$tests" || fail "cannot enter $tests"
[ ! -L "$logs" ] || fail "$logs is a symbolic link; refusing to write through it"
mkdir -p -- "$logs" || fail "cannot make $logs"
rm -rf -- "$logs/reward.txt" "$logs/reward.json" "$logs/ctrf.json" || fail "cannot remove an earlier reward from $logs"

# The workbench mounts its own interpreter, with pytest, for graders only; anywhere else the image brings pytest.
python=/opt/verifier/bin/python
[ -x "$python" ] || python=$(command -v python3) || fail "no python3 in this image: the tests cannot run"

driver=$(cat <<'PY'
import json, os, shutil, signal, sys, tempfile, time
tests, logs = sys.argv[1:3]
try:
    import pytest
except ImportError:
    sys.exit("verifier: %s has no pytest: install it in the image (or in tests/Dockerfile)" % sys.executable)


def without_compiled(folder):
    """The folder, or a copy when compiled files lie in it: those would run in place of the sources beside them."""
    for _, folders, files in os.walk(folder):
        if "__pycache__" in folders or any(name.endswith(".pyc") for name in files):
            copy = os.path.join(tempfile.mkdtemp(), "tests")
            return shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    return folder


class Recorder:
    def __init__(self):
        self.tests, self.collected, self.start = {}, 0, time.time()
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def pytest_configure(self, config):
        del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]  # a pytest that a test starts may load what it likes

    def pytest_collection_finish(self, session):
        self.collected = len(session.items)

    def pytest_runtest_logreport(self, report):
        test = self.tests.setdefault(report.nodeid, {"status": "other", "seconds": 0.0, "message": "", "done": False})
        test["seconds"] += report.duration
        test["done"] = test["done"] or report.when == "teardown"
        if report.failed:
            test["status"], test["message"] = "failed", report.longreprtext[-2000:]
        elif test["status"] != "failed":
            if hasattr(report, "wasxfail"):
                test["status"], test["message"] = "other", "marked xfail: never counts as passed"
            elif report.skipped:
                test["status"] = "skipped"
            elif report.when == "call":
                test["status"] = "passed"

    def count(self, status):
        return sum(test["status"] == status for test in self.tests.values())

    def ctrf(self):
        summary = {s: self.count(s) for s in ("passed", "failed", "skipped", "other")}
        summary.update(tests=len(self.tests), pending=0, start=int(self.start * 1000), stop=int(time.time() * 1000))
        rows = []
        for name, test in self.tests.items():
            row = {"name": name, "status": test["status"], "duration": round(test["seconds"] * 1000, 3)}
            rows.append({**row, "message": test["message"]} if test["message"] else row)
        return {"reportFormat": "CTRF", "specVersion": "0.0.0",
                "results": {"tool": {"name": "pytest"}, "summary": summary, "tests": rows}}


def write(name, text):
    """Into place by rename, so that a link planted under that name is replaced and not followed."""
    handle, path = tempfile.mkstemp(dir=logs)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    os.chmod(path, 0o644)
    os.replace(path, os.path.join(logs, name))


def shut():
    """Two settings of this process (Linux): programs that tests run, though of the same user, can neither trace it nor
    open its memory, where the results are; and it becomes the parent of every descendant whose own parent ends, so
    that none can leave this family."""
    try:
        import ctypes
        prctl = ctypes.CDLL(None).prctl
        prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
        prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, AttributeError, OSError):
        pass


def descendants():
    """Numbers of the living processes below this one."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has just ended
        if words[0] not in (b"Z", b"X"):
            parents[int(name)] = int(words[1])
    found, new = set(), {os.getpid()}
    while new:
        new = {number for number, parent in parents.items() if parent in new} - found
        found |= new
    return found


def kill(numbers):
    """By handles taken before a second look: a number alone may by now belong to a stranger."""
    handles = {}
    for number in numbers:
        try:
            handles[number] = os.pidfd_open(number)
        except OSError:
            continue  # it has just ended
    still = descendants()
    for number, handle in handles.items():
        try:
            if number in still:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            pass
        os.close(handle)


def stop_what_tests_left():
    """A program under test may leave a process that waits for the reward and writes over it: end it first.

    Only descendants: outside of a container the machine's other processes are none of ours."""
    until, quiet = time.monotonic() + 2, 0
    while quiet < 2:
        left = descendants()
        quiet = 0 if left else quiet + 1
        kill(left)
        if time.monotonic() > until:
            sys.exit("verifier: %d processes that the tests started do not end: no reward" % len(left))


shut()
recorder, given = Recorder(), tests
tests = without_compiled(given)
options = ["-c", os.devnull, "--rootdir", tests, "--confcutdir", tests, "-p", "no:cacheprovider", "--tb=short", "-rA",
           "--color=no", "-o", "python_files=test_*.py", "--import-mode=prepend", tests]
status = int(pytest.main(options, plugins=[recorder]))
sys.stdout.flush()
if tests != given:
    shutil.rmtree(os.path.dirname(tests), ignore_errors=True)
total, passed = recorder.collected, recorder.count("passed")
if status == 5 or (status in (0, 1) and total == 0):
    sys.exit("verifier: pytest collected no test in %s (files test_*.py, functions test_*): no reward" % tests)
if status not in (0, 1):
    what = {2: "was interrupted, or could not import a test file", 3: "failed inside", 4: "was called wrongly"}
    sys.exit("verifier: pytest %s (status %d): no reward" % (what.get(status, "failed"), status))
if len(recorder.tests) != total or not all(test["done"] for test in recorder.tests.values()):
    sys.exit("verifier: %d of %d tests ran to their end: no reward" % (sum(t["done"] for t in recorder.tests.values()), total))
stop_what_tests_left()
write("ctrf.json", json.dumps(recorder.ctrf()))
write("reward.txt", "%r\n" % (passed / total))
print("verifier: %d of %d tests passed" % (passed, total))
PY
)

# -I: no user packages, no PYTHON* variables, no working folder on the module path. -c: tests get an empty stdin.
"$python" -I -B -c "$driver" "$tests" "$logs" </dev/null || fail "no reward was written (see above)"
[ -f "$logs/reward.txt" ] || fail "python ended before the tests did: no reward was written"
