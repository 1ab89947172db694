from __future__ import annotations

import json

import pytest

from workbench.traces.reading import open_trace, read_trace
from workbench.traces.record import import_trace
from workbench.traces.redact import Redactor, load_rules
from workbench.traces.turns import trace_digest

# Made up, of the right shape. Put together here so that scanners of repositories do not stumble over them.
A40 = "abcdefghij0123456789ABCDEFGHIJ0123456789"
SECRETS = {
    "anthropic-key": "sk-ant-" + "api03-" + A40,
    "openrouter-key": "sk-or-" + "v1-" + A40,
    "openai-key": "sk-" + "proj-" + A40,
    "github-token": "ghp_" + A40[:36],
    "gitlab-token": "glpat-" + A40[:20],
    "huggingface-token": "hf_" + A40[:34],
    "aws-key-id": "AKIA" + "ABCDEFGH12345678",
    "google-key": "AIza" + A40[:35],
    "slack-token": "xoxb-" + "1234567890-abcdef",
    "package-index-token": "npm_" + A40[:36],
    "stripe-key": "sk_" + "live_" + A40,
    "groq-key": "gsk_" + A40 + A40[:12],
    "xai-key": "xai-" + A40 * 2,
    "nvidia-key": "nvapi-" + A40 + A40[:24],
    "sendgrid-key": "SG." + A40[:22] + "." + A40 + "abc",
    "docker-token": "dckr_" + "pat_" + A40[:27],
    "digitalocean-token": "dop_v1_" + "0123456789abcdef" * 4,
    "telegram-token": "123456789:" + "AA" + A40[:33],
    "age-key": "AGE-SECRET-" + "KEY-1" + "Q" * 58,
    "json-web-token": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl".replace(".eyJ", "Uz.eyJ").replace("Ix.", "IxMjM0NTY3.")
}  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_every_kind_of_secret(name):
    redactor, secret = Redactor(), SECRETS[name]
    for text in (f"key {secret} end", f'{{"k": "{secret}"}}', f"K={secret}\n"):
        out = redactor.text(text)
        assert secret not in out
        assert f"[{name}-1]" in out
        assert out.replace(f"[{name}-1]", secret) == text
    assert redactor.counts == {name: 3}


def test_private_keys_whole_cut_and_inside_of_json():
    begin, end = "-----BEGIN OPENSSH PRIVATE" + " KEY-----", "-----END OPENSSH PRIVATE" + " KEY-----"
    for body in ("\nabc\ndef\n", "\\nabc\\ndef\\n"):
        assert Redactor().text(f"a {begin}{body}{end} b") == "a [private-key-1] b"
    assert Redactor().text(f"a {begin}\nabc\nde") == "a [private-key-1]"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef0123456789xyz", "abcdef0123456789xyz"),
        ("curl -H 'authorization: token abcdef0123456789xyz'", "abcdef0123456789xyz"),
        ('{"x-api-key": "abcdef0123456789xyz"}', "abcdef0123456789xyz"),
        ("git clone https://me:hunter22@host/repo", "hunter22"),
        ("postgres://u:s3cret@db:5432/x", "s3cret"),
        ("export MY_API_KEY=abc123def456ghi7", "abc123def456ghi7"),
        ('{\\"secret_access_key\\": \\"abc123DEF456ghi7/+\\"}', "abc123DEF456ghi7/+"),
        ("DB_PASSWORD='abc123def456'", "abc123def456"),
        ("GITHUB_TOKEN=0a1b2c3d4e5f6a7b gh pr list", "0a1b2c3d4e5f6a7b"),
        ("curl 'https://host/x?token=a1b2c3d4e5f6g7&n=1'", "a1b2c3d4e5f6g7"),
        ('{"token": "a1b2c3d4e5f6g7"}', "a1b2c3d4e5f6g7"),
        ("private_key: a8f5f167f44f4964e6c998de", "a8f5f167f44f4964e6c998de"),
        ("curl -s -u admin:open-sesame https://host/x", "open-sesame"),
        ('{"command": "curl --user \\"me:hunter22\\" host"}', "hunter22"),
        ("sshpass -p hunter22 ssh host", "hunter22"),
        ("machine host login bob password hunter22", "hunter22"),
        ("https://hooks.slack.com/services/T01ABCDEF/B01ABCDEF/abcdefghijkl", "T01ABCDEF/B01ABCDEF/abcdefghijkl"),
    ],
)
def test_secrets_known_by_what_stands_before_them(text, secret):
    out = Redactor().text(text)
    assert secret not in out
    assert out != text
    assert len(out) > len(text) - len(secret)  # the rest is there


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=2048 and token_count: 100000000000",
        "token = request2.headers.get(name); tokens=a1b2c3d4e5f6 tokenizer: bert4base4uncased4",
        "curl -u $NAME:$PASS https://host; curl -u me: host; login page, password forgotten",
        "sk-learn is a library; skip-this-very-long-option-name",
        "password: str = Field(default=None)",
        "the secret is out, bearer of news",
        "API_KEY=$OPENAI_API_KEY",
        "https://host:8080/path@v1",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "/home/user/x /root/y /homework/alice",
    ],
)
def test_what_is_no_secret_stays(text):
    redactor = Redactor()
    assert redactor.text(text) == text
    assert not redactor.counts


def test_the_same_secret_has_the_same_number():
    redactor, a, b = Redactor(), SECRETS["github-token"], SECRETS["github-token"][:-1] + "Z"
    assert redactor.text(f"{a} {b} {a}") == "[github-token-1] [github-token-2] [github-token-1]"
    assert redactor.text(b) == "[github-token-2]"


def test_redacting_twice_changes_nothing():
    for text in [
        *SECRETS.values(),
        "Authorization: Bearer abcdef0123456789xyz",
        "X_API_KEY=abc123def456ghi7",
        "/home/alice/x",
    ]:
        once = Redactor().text(text)
        assert Redactor().text(once) == once


def test_home_folders_and_the_name_of_their_owner():
    redactor = Redactor()
    redactor.learn("/home/wintermute/work")
    assert (
        redactor.text("/home/wintermute/a -home-wintermute-work by wintermute")
        == "/home/user/a -home-user-work by user"
    )
    assert (
        redactor.text("/Users/case/x C:\\Users\\case\\y C:\\\\Users\\\\case\\\\z")
        == "/Users/user/x C:\\Users\\user\\y C:\\\\Users\\\\user\\\\z"
    )
    assert redactor.text("wintermutes") == "wintermutes"
    assert redactor.text("/var/home/case/x /export/home/case") == "/var/home/user/x /export/home/user"
    assert redactor.counts == {"home": 6, "user-name": 2}


def test_a_common_name_is_no_word_to_take_away():
    redactor = Redactor()
    redactor.learn("/home/test/work")
    assert redactor.text("run the test in /home/test") == "run the test in /home/test"


def session(path, secret):
    message = {"role": "assistant", "id": "m", "model": "x", "content": [
        {"type": "thinking", "thinking": f"key {secret}"},
        {"type": "text", "text": f"I use {secret}"},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": f"export K={secret}; cd /home/wintermute"}},
    ]}  # fmt: skip
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": f"wintermute {secret}"}],
    }
    common = {"sessionId": "s", "cwd": "/home/wintermute/w"}
    entries = [
        {"type": "assistant", "message": message},
        {"type": "user", "message": result},
        {"type": "novel", "x": [secret]},
    ]
    path.write_text("".join(json.dumps(common | e) + "\n" for e in entries))
    return path


def test_nothing_of_it_reaches_the_record(tmp_path):
    secret = SECRETS["anthropic-key"]
    path = session(tmp_path / "s.jsonl", secret)
    found = import_trace(open_trace(path), tmp_path / "out")
    import gzip

    written = gzip.decompress(found.path.read_bytes()).decode()
    assert secret not in written
    assert "wintermute" not in written
    assert found.report["redacted"]["anthropic-key"] == 5
    assert found.report["redacted"]["user-name"] >= 1
    again = read_trace(found.path)
    assert again.report.redacted == found.report["redacted"]
    assert again.steps[0].calls[0].command() == "export K=[anthropic-key-1]; cd /home/user"
    assert import_trace(open_trace(path), tmp_path / "out").path == found.path


def test_unless_asked_otherwise(tmp_path):
    secret = SECRETS["anthropic-key"]
    trace = read_trace(session(tmp_path / "s.jsonl", secret), redact=False)
    assert trace.steps[0].text == f"I use {secret}"
    assert trace.info.cwd == "/home/wintermute/w"
    assert trace.report.redacted == {}


def test_rules_that_are_none_say_so(tmp_path):
    (tmp_path / "r.yaml").write_text("rules: [{name: a, pattern: '(', hints: []}]")
    with pytest.raises(ValueError, match=r"r\.yaml: not a file of redaction rules"):
        load_rules(tmp_path / "r.yaml")


def test_a_record_is_read_as_it_was_imported(tmp_path):
    """Rules that are added later must not change the digest of a record that has labels."""
    secret = SECRETS["anthropic-key"]
    found = import_trace(open_trace(session(tmp_path / "s.jsonl", secret), redact=False), tmp_path / "out")
    assert trace_digest(read_trace(found.path).steps) == found.digest
    assert read_trace(found.path).steps[0].text == f"I use {secret}"
