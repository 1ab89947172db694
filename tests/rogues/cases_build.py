"""Tasks whose image cannot be built, or whose build misbehaves."""

from __future__ import annotations

import base64

from .builders import DOCKERFILE, FORCE_PASS, SHELL_TESTS, SOLVE, WRITE, TaskCase, with_pytest

GONE = "RUN pip install --retries 0 --timeout 2 --index-url http://127.0.0.1:9/simple six-of-nowhere\n"

CASES = [
    TaskCase(
        "build-fails", "a RUN line that fails", "SWE-smith#8",
        {"environment/Dockerfile": DOCKERFILE + "RUN echo reading && false\n"}, stage="build", reasons=("build",), message="line 4",
    ),
    TaskCase("build-mirror-gone", "a RUN line that installs from a mirror that is gone", "orca-agent#65",
        {"environment/Dockerfile": DOCKERFILE + GONE}, stage="build", reasons=("build",), message="line 4",
    ),
    TaskCase(
        "build-hangs", "a RUN line that never ends", "ours", {"environment/Dockerfile": DOCKERFILE + "RUN sleep 1000\n"}, stage="build",
        reasons=("build",), message="line 4", times={"build_timeout": 2.0},
    ),
    TaskCase(
        "build-ignores-term", "a RUN line that ignores TERM and detaches", "ours",
        {"environment/Dockerfile": DOCKERFILE + "RUN trap '' TERM HUP INT; setsid sleep 1000 & while :; do sleep 1; done\n"},
        stage="build", reasons=("build",), times={"build_timeout": 2.0},
    ),
    TaskCase(
        "build-forks", "a fork bomb in a RUN line", "notes on Harbor 0.26 (9,070 host processes)",
        {"environment/Dockerfile": DOCKERFILE + "RUN f() { f | f & }; f; sleep 1000\n"}, stage="build", reasons=("build",),
        times={"build_timeout": 2.0}, slow=True,
    ),
    TaskCase(
        "build-fills-disk", "a RUN line that writes without end", "tolokaforge#1218",
        {"environment/Dockerfile": DOCKERFILE + "RUN cat /dev/zero > /app/zero\n"}, stage="build", reasons=("build",),
        times={"build_timeout": 2.0},
    ),
    TaskCase(
        "build-output", "200 MB of output from a RUN line that then fails", "notes on Harbor 0.26 (200 MB log)",
        {"environment/Dockerfile": DOCKERFILE + "RUN yes rogue | head -c 200000000; false\n"}, stage="build", reasons=("build",),
    ),
    TaskCase(
        "base-unknown", "FROM an image that nobody has", "ours",
        {"environment/Dockerfile": "FROM nobody.example/none:1\n"}, stage="build", reasons=("build-unsupported",), message="line 1",
    ),
    TaskCase(
        "copy-missing", "COPY of a file that is not there", "ours",
        {"environment/Dockerfile": DOCKERFILE + "COPY gone.txt /app/\n"}, stage="build", reasons=("build",), message="gone.txt",
    ),
    TaskCase(
        "copy-outside", "COPY from outside the environment", "ours",
        {"environment/Dockerfile": DOCKERFILE + "COPY ../solution/solve.sh /app/\n"}, stage="build", reasons=("build",), message="line 4",
    ),
    TaskCase(
        "copy-host", "COPY of a file of the host", "ours",
        {"environment/Dockerfile": DOCKERFILE + "COPY ../../../../../../etc/shadow /app/\n"}, stage="build", reasons=("build",), message="line 4",
    ),
    TaskCase(
        "copy-through-proc", "sound, but it copies through a link to /proc/1/root: that is the sandbox's own root, and nothing reaches the host", "ours",
        {"environment/Dockerfile": DOCKERFILE + "RUN ln -s /proc/1/root/tmp /app/out\nCOPY numbers.txt /app/out/rogue-escape.txt\n"},
        stage="admitted", rewards={"oracle": 1.0, "noop": 0.0},
    ),
    TaskCase(
        "dockerfile-nonsense", "a Dockerfile that is prose", "ours",
        {"environment/Dockerfile": "Please install Python.\n"}, stage="build", reasons=("build",), message="line 1",
    ),
    TaskCase("dockerfile-empty", "an empty Dockerfile", "ours", {"environment/Dockerfile": "\n"}, stage="build", reasons=("build",), message="FROM"),
    TaskCase(
        "dockerfile-stages", "two stages: more than this back end builds", "ours",
        {"environment/Dockerfile": "FROM python:3.13-slim AS one\nFROM python:3.13-slim\nCOPY --from=one /etc /x\n"}, stage="build",
        reasons=("build-unsupported",), message="docker",
    ),
    TaskCase(
        "reward-in-image", "sound, with a reward of 1 and tests planted in its own image: neither has an effect", "pier#51",
        {"environment/Dockerfile": DOCKERFILE
         + "RUN mkdir -p /logs/verifier /tests && echo 1 > /logs/verifier/reward.txt && echo 'exit 0' > /tests/test.sh\n"},
        stage="admitted", rewards={"oracle": 1.0, "noop": 0.0},
    ),
    TaskCase(
        "solution-in-image", "its whole solution can be read in the image", "Repo2RLEnv PR #145",
        {"environment/Dockerfile": DOCKERFILE + "COPY patch.sh /opt/patch.sh\n", "environment/patch.sh": SOLVE},
        stage="noop", reasons=("solution-in-image",), message="/opt/patch.sh",
    ),
    TaskCase(
        "solution-made-in-image", "a RUN line that writes the solution where only a search of the image finds it", "Repo2RLEnv PR #145",
        {"environment/Dockerfile": DOCKERFILE + "RUN printf '%s' '" + base64.b64encode(SOLVE.encode()).decode() + "' | base64 -d > /var/lib/.cache\n"},
        stage="noop", reasons=("solution-in-image",), message="/var/lib/.cache",
    ),
    TaskCase(
        "solution-line-in-image", "sound, but one long line of its solution is in the image: reported", "Repo2RLEnv PR #145",
        {"environment/Dockerfile": DOCKERFILE + "COPY notes.txt /opt/notes.txt\n", "environment/notes.txt": SOLVE.splitlines()[4] + "\n"},
        stage="admitted", rewards={"oracle": 1.0, "noop": 0.0}, report=("solution_in_image",),
    ),
    TaskCase(
        "tests-in-image", "the tests can be read in the image", "OpenEnv PR #972",
        {"environment/Dockerfile": DOCKERFILE + "COPY check.sh /opt/check.sh\n", "environment/check.sh": SHELL_TESTS + WRITE},
        stage="noop", reasons=("tests-in-image",), message="/opt/check.sh",
    ),
    TaskCase(
        "conftest-in-image", "sound, with a conftest.py in its own image that passes every test: it has no effect", "OpenEnv PR #972",
        {**with_pytest(), "environment/conftest.py": FORCE_PASS, "environment/Dockerfile": DOCKERFILE + "COPY conftest.py /app/conftest.py\n"},
        stage="admitted", rewards={"oracle": 1.0, "noop": 0.0},
    ),
]  # fmt: skip
