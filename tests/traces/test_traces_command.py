"""`workbench traces …` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.traces.labels import Label, LabelJournal
from workbench.traces.reading import read_trace
from workbench.traces.turns import turns

SAMPLES = Path(__file__).parent / "samples"
PI = SAMPLES / "pi-0.73.1-session.jsonl"


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*arguments):
        code = main(["traces", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def rows(out):
    return [json.loads(line) for line in out.splitlines()]


def test_import(run, tmp_path):
    code, out, err = run("import", PI, SAMPLES / "codex-rollout.jsonl", "--to", tmp_path / "d")
    assert code == 0, err
    assert "7 turns (3 text, 4 tool calls)" in out
    assert len(list((tmp_path / "d").iterdir())) == 2


def test_import_as_json_goes_on_after_a_wrong_file(run, tmp_path):
    code, out, err = run("import", SAMPLES / "pi-models.json", PI, "--to", tmp_path, "--json")
    assert code == 1
    assert "pi-models.json: not a trace. It looks like Pi's models.json." in err
    (row,) = rows(out)
    assert (row["format"], row["turns"]) == ("pi-session", {"turns": 7, "text": 3, "call": 4})
    assert Path(row["path"]).exists()


def test_secrets_stay_only_when_asked(run, tmp_path):
    secret = "ghp_" + "a1" * 18
    message = {"role": "assistant", "content": [{"type": "text", "text": secret}]}
    (tmp_path / "s.jsonl").write_text(
        json.dumps({"type": "session", "version": 3}) + "\n" + json.dumps({"type": "message", "message": message})
    )
    _, out, _ = run("import", tmp_path / "s.jsonl", "--to", tmp_path / "a")
    assert "redacted: github-token 1" in out
    _, out, _ = run("import", tmp_path / "s.jsonl", "--to", tmp_path / "b", "--keep-secrets", "--json")
    assert read_trace(rows(out)[0]["path"], redact=False).steps[0].text == secret


def test_turns_and_classify(run):
    code, out, _ = run("turns", PI)
    assert code == 0
    assert "4.2  bash   python3 hello.py" in out
    code, out, _ = run("classify", PI, "--json")
    assert [r["guess"] for r in rows(out)] == ["read", "read", "write", "write", "read", "test", "read"]
    assert {"trace", "step", "call", "rule", "file"} <= rows(out)[0].keys()


def test_wrong_format_and_missing_file(run):
    code, _, err = run("turns", PI, "--format", "codex-exec")
    assert code == 1
    assert "looks like a Pi session, not a Codex exec --json stream" in err
    code, _, err = run("turns", "nowhere.jsonl")
    assert (code, err) == (2, "workbench: there is no nowhere.jsonl\n")
    code, _, err = run("classify", PI, "--rules", SAMPLES / "pi-models.json")
    assert code == 2


@pytest.fixture
def journals(tmp_path):
    """Two annotators of one trace: they differ in one of seven turns."""
    said = {"a": "read read write write read test read".split(), "b": "read read write write read test test".split()}
    for who, labels in said.items():
        journal = LabelJournal(tmp_path / f"{who}.jsonl")
        for turn, label in zip(turns(read_trace(PI)), labels, strict=True):
            journal.add(Label(*turn.key, label, who, "1.0"))
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


def test_agreement(run, journals):
    code, out, _ = run("agreement", *journals)
    assert code == 0
    assert "agreement 85.7%" in out
    code, out, _ = run("agreement", *journals, "--json")
    whole, single = rows(out)
    assert (whole["n"], whole["equal"], whole["trace"]) == (7, 6, None)
    assert whole["kappa"] == pytest.approx((6 * 7 - 18) / (49 - 18))  # rows 4 2 1, columns 3 2 2: Σ rc = 12 + 4 + 2
    assert single["trace"] == turns(read_trace(PI))[0].trace
    assert whole["confusion"][0] == [3, 0, 0, 1]


def test_agreement_with_the_classifier(run, journals):
    code, out, _ = run("agreement", journals[0], "classifier", "--traces", PI, "--json")
    assert code == 0
    assert (rows(out)[0]["n"], rows(out)[0]["equal"]) == (7, 7)
    code, _, err = run("agreement", journals[0], "classifier")
    assert code == 2
    assert "--traces PATH" in err


def test_agreement_needs_to_know_whose_labels(run, journals, tmp_path):
    code, _, err = run("agreement", tmp_path, journals[1])
    assert code == 2
    assert "has labels of a, b: say whose" in err
    code, out, _ = run("agreement", tmp_path, journals[1], "--annotators", "a", "b", "--json")
    assert rows(out)[0]["equal"] == 6
    code, out, _ = run("agreement", tmp_path, "classifier", "--annotators", "resolved", "-", "--traces", PI, "--json")
    assert rows(out)[0]["n"] == 6  # the seventh is disputed


def test_agreement_of_nothing(run, journals, tmp_path):
    LabelJournal(tmp_path / "other").add(Label("x", 1, 0, "read", "c"))
    code, _, err = run("agreement", journals[0], tmp_path / "other")
    assert code == 1
    assert "no turn was labelled on both sides" in err
    (tmp_path / "bad").write_text("{}\n")
    code, _, err = run("agreement", journals[0], tmp_path / "bad")
    assert code == 1
    assert "bad:1: not a label" in err


def test_export(run, journals, tmp_path):
    code, out, _ = run("export", PI, "--to", tmp_path / "x" / "t.json", "--labels", journals[0])
    assert code == 0
    assert "7 labels" in out
    data = json.loads((tmp_path / "x" / "t.json").read_text())
    assert data["schema_version"] == "ATIF-v1.8"
    assert [x["label"] for x in data["steps"][3]["extra"]["labels"]] == ["read", "test"]
    code, _, err = run("export", PI, "--to", tmp_path)
    assert code == 2
    assert "is a folder" in err


def test_search(run, tmp_path):
    code, out, _ = run("search", "python3 hello", SAMPLES, "--json")
    assert code == 0
    assert {r["field"] for r in rows(out)} == {"command"}
    assert run("search", "no such words", SAMPLES)[0] == 1
    assert run("search", "(", SAMPLES, "--regex")[0] == 2
