"""The keyword classifier on commands as agents write them. What each should be was decided by reading, before running."""

from __future__ import annotations

import pytest

from workbench.traces.classify import RULES, Classifier, classify, default
from workbench.traces.shell import split
from workbench.traces.turns import TurnView

COMMANDS = {
    "read": [
        "cat file.txt",
        "ls -la && cat README.md | head -50",
        "cd /app && grep -rn foo . | head",
        "sed -n 1,20p f.py",
        "find . -name '*.py' -exec wc -l {} +",
        "for f in *.py; do echo $f; cat $f; done",
        "python3 - <<'EOF'\nimport json\nprint(json.load(open('x'))['rows'])\nEOF",
        "python -c 'import torch; print(torch.__version__)'",
        "python3 --version; which gcc",
        "vim --help",
        "git log --oneline | head",
        "curl -s http://localhost:8080/health",
        "ls 2>/dev/null; cat a 2>&1",
        "cat a > /dev/null",
        "echo hello",
        "mkdir -p /tmp/x && ls /tmp/x",
        "docker ps -a; docker logs c",
        "apt-cache policy jq",
        "",
        "cat <<'EOF'\nrm -rf / && pytest > file\nEOF",
        "grep -c 'docker build' build.log",
        "bash -lc 'cat /app/x'",
        "tar tzf a.tgz | head",
        "tar -tvf a.tar",
        "unzip -l a.zip",
        "gzip -dc a.gz | head",
        "git stash list",
        "git config --get user.name",
        "systemctl status nginx",
        "service nginx status",
        "crontab -l",
        "openssl version",
        "conda list",
        "ip a",
        "command -v pytest docker",
        "docker exec -it -u root c cat /etc/passwd",
        "ssh -p 22 host 'cat /etc/hosts'",
        "ls | xargs -I {} cat {}",
        "find . -exec bash -c 'cat \"$1\"' _ {} \\;",
        "bash <<'EOF'\nls -la\ncat x\nEOF",
        "perl -ne 'print if /x/' f",
        "sqlite3 a.db 'select count(*) from created'",
        "flock /tmp/l cat f; chroot /x cat f; doas cat f",
    ],
    "write": [
        "cat > f.py <<'EOF'\nimport pytest\npytest.main()\nEOF",
        "cat <<'EOF' > Dockerfile\nFROM x\nRUN apt-get install -y jq\nEOF",
        "mkdir -p env_001/tests && cat > env_001/tests/test.sh <<'EOF'\npytest\nEOF\nchmod +x env_001/tests/test.sh",
        "echo hi >> notes.md",
        "ls -la && echo hi > a.txt",
        "sed -i 's/a/b/' f.py && cat f.py",
        "sed -i.bak -e 's/a/b/' f.py",
        "perl -pi -e 's/a/b/' f",
        "tee /app/x <<'EOF'\nhi\nEOF",
        "cat <<'EOF' | tee a.txt >/dev/null\nhi\nEOF",
        "apply_patch <<'EOF'\n*** Begin Patch\nEOF",
        "cp -r a b",
        "mkdir -p a/b",
        "git commit -am 'fix tests'",
        "python - <<'EOF'\nfrom pathlib import Path\np = Path('a'); s = p.read_text(); assert 'x' in s; p.write_text(s.replace('x', 'y'))\nEOF",
        "python3 - <<'EOF'\nopen('t.py', 'w').write('''def test():\n    assert 1\n''')\nEOF",
        "jq '.a=1' x.json > y.json",
        "find . -name '*.py' -exec sed -i s/a/b/ {} +",
        "find . -name '*.pyc' -delete",
        "ls *.py | xargs -n 1 sed -i s/a/b/",
        "{ echo a; echo b; } > f",
        "(echo a; echo b) > f",
        "for i in 1 2; do echo $i; done > f",
        "ruff format .",
        "bash -s -- a <<'EOF'\nsed -i s/a/b/ f\nEOF",
    ],
    "build": [
        "apt-get update && apt-get install -y --no-install-recommends jq",
        "sudo DEBIAN_FRONTEND=noninteractive apt-get -qq install -y jq 2>&1 | tail -3",
        "pip install -q numpy",
        "python3 -m pip install numpy",
        "python -m venv .venv && . .venv/bin/activate && pip install -r requirements.txt",
        "docker build -t env_001 env_001/environment",
        "cat > Dockerfile <<'EOF'\nFROM x\nEOF\ndocker build -t x .",
        "./configure && make -j4",
        "gcc -O2 -o prog prog.c",
        "git clone https://example.org/x",
        "curl -fsSL -o data.tgz https://example.org/d.tgz && tar xzf data.tgz",
        "python generate_data.py --rows 500",
        "bash setup.sh",
        "for p in numpy scipy; do pip install $p; done",
        "for d in easy hard; do docker build -t t-$d --build-arg LEVEL=$d .; done",
        "timeout 600 npm ci",
        "harbor task init my-task",
        "sudo -u root apt-get install -y gcc",
        "timeout -k 5 $LIMIT make -j4",
        "tar -C d -xf a.tar",
        "tar -cf x.tar -T list",
        "gzip -c f > f.gz",
        "dpkg -i x.deb",
        "npm run build",
        "psql db <<'EOF'\ncreate table a (b int);\nEOF",
        "sqlite3 a.db 'create table a (b)'",
        "docker exec c bash -lc 'pip install numpy'",
    ],
    "test": [
        "pytest -q tests",
        "cd /app && python -m pytest -q 2>&1 | tail -3",
        "bash solution/solve.sh",
        "./run.sh",
        "python hello.py",
        "make test",
        "cargo test --release",
        "docker build -t x . && docker run --rm x bash /tests/test.sh",
        "docker exec c bash -c 'cd /app && pytest'",
        "python /opt/tools/validate.py env_001 oracle",
        "python -m py_compile env_001/solution/solve.py",
        "bash -n solve.sh",
        "diff expected.txt actual.txt",
        "cat > solve.py <<'EOF'\nprint(1)\nEOF\npython solve.py",
        "cp -r a b && pytest b",
        "python - <<'EOF'\nfrom m import f\nassert f(1) == 2\nEOF",
        "timeout 60 bash -lc 'cd /app && ./prog < in > out; cmp out want'",
        "npm run lint",
        "find . -name '*.sh' -exec bash -n {} \\;",
        "ruff format --check .",
        "{ pytest; } > log",
        "bash <<'EOF'\ncd /app\npytest -q\nEOF",
    ],
}


@pytest.mark.parametrize(("label", "command"), [(k, c) for k, v in COMMANDS.items() for c in v])
def test_commands(label, command):
    guess = default().command(command)
    assert guess.label == label, guess


# AutoEnvScaling, appendix I.1: filing sweeps over difficulty as build inverted the reading of an episode.
SWEEPS = [
    "for n in 0.01 0.05 0.1; do python gen.py --noise $n --out d; python solve.py d; done",
    "for level in easy medium hard; do docker build -t t --build-arg LEVEL=$level . && docker run --rm t; done",
    "for seed in 1 2 3; do python make_data.py --seed $seed && python solution.py && python grade.py; done",
    "for p in solution/partial/*.sh; do bash build_env.sh; bash $p; cat reward.txt; done",
    "while read v; do ./setup.sh $v; python verify.py $v; done < variants.txt",
    "python difficulty_sweep.py",
    "python tools/calibrate_noise.py --rows 100",
    "python - <<'EOF'\nfor tol in (0.1, 0.01):\n    env = build(tol)\n    print(tol, score(env))\nEOF",
]


@pytest.mark.parametrize("command", SWEEPS)
def test_a_sweep_is_a_test_although_it_builds(command):
    assert default().command(command).label == "test"


def call(tool, command=None, arguments="", step=2, place=1):
    return TurnView("t", step, place, 0, "call", tool=tool, command=command, arguments=arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "label"),
    [
        ("Read", "{}", "read"), ("read", "{}", "read"), ("Grep", "{}", "read"), ("Glob", "{}", "read"), ("WebFetch", "{}", "read"),
        ("Write", "{}", "write"), ("write", "{}", "write"), ("Edit", "{}", "write"), ("MultiEdit", "{}", "write"), ("apply_patch", "", "write"),
        ("str_replace_based_edit_tool", '{"command": "view", "path": "x"}', "read"),
        ("str_replace_based_edit_tool", '{"command": "create", "path": "x"}', "write"),
        ("TodoWrite", "{}", "read"), ("update_plan", "{}", "read"), ("write_stdin", "{}", "test"), ("never heard of", "{}", "read"),
    ],
)  # fmt: skip
def test_tools_that_are_no_shells(tool, arguments, label):
    assert default().turn(call(tool, arguments=arguments)).label == label


def test_text_takes_the_label_of_the_call_that_it_announces():
    said = TurnView("t", 2, 0, 0, "text", text="Let me look at the tests first.")
    assert classify([said, call("bash", "pytest")]) == ["test", "test"]
    assert classify([said]) == ["read"]
    assert classify([said, TurnView("t", 3, 0, 1, "text", text="All tests pass, I am done.")]) == ["read", "test"]


def test_a_guess_says_why():
    guess = default().command("cd /x && sudo apt-get install -y jq")
    assert (guess.label, guess.matched) == ("build", "apt-get")
    assert guess.rule.startswith("shell/")


def test_the_order_of_a_compound_command_is_data(tmp_path):
    text = RULES.read_text().replace("order: [test, build, write, read]", "order: [read, test, build, write]")
    (tmp_path / "r.yaml").write_text(text)
    assert Classifier(tmp_path / "r.yaml").command("pytest; ls").label == "read"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("order: [test, build, write, read]", "order: [test, build, write]", "order must name"),
        ("{label: write, name: 'cp|mv'}", "{label: written, name: 'cp|mv'}", "written is not known"),
        ("{label: write, name: 'cp|mv'}", "{label: write, nmae: 'cp|mv'}", "nmae is not known"),
        ("{label: write, name: 'cp|mv'}", "{label: write, name: '('}", "not a file of rules"),
    ],
)
def test_rules_that_are_none_say_so(tmp_path, old, new, says):
    text = RULES.read_text()
    assert old in text
    (tmp_path / "r.yaml").write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=says):
        Classifier(tmp_path / "r.yaml")


def test_scripts_are_taken_apart_by_bashs_grammar():
    script = "A=1 sudo -E timeout 5 ./a.sh 'x; y' \"$B\" | tee log > out && (cd d; make) || f() { ls; }; bash -c 'cat \"q r\"'"
    assert [(p.words, p.writes) for p in split(script)] == [
        (("./a.sh", "x; y", "$B"), False),
        (("tee", "log"), True),
        (("cd", "d"), False),
        (("make",), False),
        (("ls",), False),
        (("cat", "q r"), False),
    ]


def test_a_heredoc_belongs_to_its_command_and_is_not_taken_apart():
    first, second, third = split("python3 - <<'EOF' | head > f\nrm -rf /; pytest\nEOF\nls")
    assert (first.words[0], first.body, first.writes) == ("python3", "rm -rf /; pytest\n", False)
    assert (second.words, second.body, second.writes) == (("head",), "", True)
    assert third.words == ("ls",)


@pytest.mark.parametrize(
    "script",
    [
        "find . -exec",
        "docker exec",
        "ssh",
        "sudo -u",
        "xargs -I",
        "'unclosed",
        "for x in",
        "$((",
        "cat <<EOF\nno end",
        "\x00\x01",
        "|||",
        "((((" * 5000,
        "a" * 300_000,
        "\ud800",
    ],
)
def test_broken_scripts_are_no_trouble(script):
    assert default().command(script).label in ("read", "build", "write", "test")
