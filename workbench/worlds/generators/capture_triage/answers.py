"""What an analyst must conclude from the case, computed from the world itself."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections import Counter
from typing import Any

from workbench.worlds import Defect
from workbench.worlds.generators.capture_triage.scene import Session, World, cipher, utc

SESSION_COLUMNS = ("session", "server_ip", "domain", "start_utc", "bytes_up", "bytes_down", "status")


def _start(s: Session) -> str:
    return utc(s.start_us // 1_000_000)


def domain_of(world: World, s: Session) -> str:
    """The Host line's domain, else what the client last asked for before that has this address."""
    for line in s.request.split("\r\n"):
        if line.startswith("Host: "):
            return line[6:]
    return [q for t, c, q, a in world.dns if c == s.client and a == s.server and t * 1_000_000 <= s.start_us][-1]


def findings_of(world: World, active: Any = None) -> list[dict[str, Any]]:
    """The findings; `active` may replace the rule for indicators (hidden counterfactuals)."""
    allowed = {d for d, _, a in world.sites if a == "yes"}
    day = _start(world.sessions[0])[:10]
    listed = {
        d
        for d, added, retired in world.indicators
        if (active or (lambda a, r: a <= day and (not r or r > day)))(added, retired)
    }
    pairs: dict[tuple[str, str], list[Session]] = {}
    for s in world.sessions:
        pairs.setdefault((s.client, domain_of(world, s)), []).append(s)
    out = []
    for (client, domain), found in pairs.items():
        gaps = [b.start_us - a.start_us for a, b in itertools.pairwise(found)]
        sent = [s for s in found if s.request.startswith("POST") and " 201 " in s.response[:13]]
        if domain in listed:
            out.append(("indicator-contact", client, domain, found, len(found)))
        if domain not in allowed and len(found) >= 4 and max(gaps) - min(gaps) <= 5_000_000:
            out.append(("beacon", client, domain, found, len(found)))
        if domain not in allowed and sum(len(s.request.split("\r\n\r\n", 1)[1]) for s in sent) >= 2000:
            out.append(("exfiltration", client, domain, sent, len(sent)))
    rows = [
        {"kind": k, "client": c, "subject": d, "first_utc": _start(f[0]), "last_utc": _start(f[-1]), "count": n}
        for k, c, d, f, n in out
    ]
    for at, source, user, result in world.auth:
        fails = [t for t, a, u, r in world.auth if (a, u, r) == (source, user, "failure") and at - 600 <= t < at]
        if result == "success" and len(fails) >= 5:
            rows.append(
                {
                    "kind": "credential-guessing",
                    "client": source,
                    "subject": user,
                    "first_utc": utc(fails[0]),
                    "last_utc": utc(at),
                    "count": len(fails),
                }
            )
    rows.sort(key=lambda r: (r["first_utc"], r["kind"], r["client"], r["subject"]))
    return [{"id": f"F-{i + 1:02d}", **r} for i, r in enumerate(rows)]


def artifact_of(world: World) -> tuple[str, list[bytes]]:
    """Name and decrypted parts of the stolen document."""
    key = next(s.response for s in world.sessions if " key=" in s.response).split("key=")[1]
    parts = {}
    for s in world.sessions:
        if "X-Part: " in s.request and " 201 " in s.response[:13]:
            head, body = s.request.split("\r\n\r\n", 1)
            parts[int(head.split("X-Part: ")[1].split("/")[0])] = body
    name = next(s.request for s in world.sessions if "X-Part" in s.request).split(" ")[1].removeprefix("/u/")
    sealed = [base64.b64decode(parts[i]) for i in sorted(parts)]
    plain = cipher(b"".join(sealed), bytes.fromhex(key))
    ends = [0, *itertools.accumulate(map(len, sealed))]
    return name, [plain[a:b] for a, b in itertools.pairwise(ends)]


def truth(world: World, defects: tuple[Defect, ...]) -> dict[str, Any]:
    findings = findings_of(world)
    sessions = [
        dict(zip(SESSION_COLUMNS, (f"{s.client}:{s.port}", s.server, domain_of(world, s), _start(s), str(len(s.request)), str(len(s.response)), s.response[9:12]), strict=True))
        for s in world.sessions
    ]  # fmt: skip
    events = sorted((f[f"{e}_utc"], f["id"], e) for f in findings for e in ("first", "last"))
    name, parts = artifact_of(world)
    whole = b"".join(parts)
    skew = {d.path[11:-4]: d.params["seconds"] for d in defects if d.kind == "clock_skew"}
    report = {
        "case": world.case,
        "clock_offsets": {"dns": skew.get("dns", 0), "auth": skew.get("auth", 0)},
        "duplicate_packets": sum(len(d.params["indexes"]) for d in defects if d.kind == "duplicate_packets"),
        "incomplete_streams": [s for d in defects if d.kind == "missing_packets" for s in d.params["streams"]],
        "artifact": {"name": name, "bytes": len(whole), "sha256": hashlib.sha256(whole).hexdigest(), "md5": hashlib.md5(whole, usedforsecurity=False).hexdigest()},
        "findings_by_kind": dict(Counter(f["kind"] for f in findings)),
    }  # fmt: skip
    timeline = [{"time_utc": t, "finding": i, "event": e} for t, i, e in events]
    chunks = [[len(p), hashlib.sha256(p).hexdigest()] for p in parts]
    return {"sessions": sessions, "findings": findings, "timeline": timeline, "report": report, "chunks": chunks}
