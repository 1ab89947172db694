"""The public contract of the case: files, damage, truth and prompt (see scene.py for the world itself)."""

from __future__ import annotations

import csv
import io
import json
import struct
from datetime import UTC, datetime

from workbench.worlds import Defect, Output, Prompt, Spec, Stage, Tree, Workflow
from workbench.worlds.draw import Draw
from workbench.worlds.formats import csv_table, pcap
from workbench.worlds.generators.capture_triage.answers import SESSION_COLUMNS, truth
from workbench.worlds.generators.capture_triage.scene import (
    RESOLVER,
    Session,
    World,
    check,
    make,
    packets_of,
    utc,
)

__all__ = ["SPEC", "World", "check", "make", "plan", "prompt", "recover", "render", "truth", "workflow"]
FINDING = {"id": "string", "kind": "string", "client": "string", "subject": "string", "first_utc": "string", "last_utc": "string", "count": "integer"}  # fmt: skip
SPEC = Spec(
    name="capture_triage",
    revision=1,
    domain="9.5",
    title="Triage of a data theft from packet captures",
    summary="Rebuild TCP sessions from damaged captures, correct log clocks, detect four kinds of findings, decrypt the stolen document.",
    outputs=(
        Output("output/staging/sessions.csv", "csv", "one row per TCP session", dict.fromkeys(SESSION_COLUMNS, "string")),
        Output("output/findings.json", "json", "the findings", {"findings": [FINDING]}),
        Output("output/timeline.json", "json", "what happened when", {"events": [{"time_utc": "string", "finding": "string", "event": "string"}]}),
        Output("output/artifact.bin", "binary", "the stolen document, decrypted", {"description": "the exact bytes"}),
        Output(
            "output/report.json",
            "json",
            "the closing report",
            {
                "case": "string",
                "clock_offsets": {"dns": "integer", "auth": "integer"},
                "duplicate_packets": "integer",
                "incomplete_streams": ["string"],
                "artifact": {"name": "string", "bytes": "integer", "sha256": "string", "md5": "string"},
                "findings_by_kind": {"<kind>": "integer"},
            },
        ),
    ),
    workflow_stages=("ingest", "reassemble", "align", "attribute", "detect", "decrypt", "report"),
    artifact_roles=("packet-capture", "log", "reference-table", "policy"),
    relation_types=("temporal", "reassembly", "precedence", "lookup"),
    source_kind="network-forensics",
)  # fmt: skip


def seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())


def workflow(world: World) -> Workflow:
    packets = sum(len(packets_of(s, "")) for s in world.sessions)
    return Workflow((
        Stage("merge-captures", "ingest", packets),
        Stage("reassemble", "reassemble", len(world.sessions), ("merge-captures",)),
        Stage("correct-clocks", "align", len(world.dns) + len(world.auth)),
        Stage("attribute-sessions", "attribute", len(world.sessions), ("reassemble", "correct-clocks")),
        Stage("detect", "detect", len(world.sessions) + len(world.auth), ("attribute-sessions",)),
        Stage("order-events", "detect", 8, ("detect",)),
        Stage("decrypt", "decrypt", sum("X-Part" in s.request for s in world.sessions), ("reassemble",)),
        Stage("report", "report", 6, ("order-events", "decrypt")),
    ))  # fmt: skip


def _query(row: int, when: int, client: str, domain: str) -> pcap.Packet:
    """The DNS question on the wire (RFC 1035)."""
    name = b"".join(bytes([len(p)]) + p.encode() for p in domain.split(".")) + b"\0"
    payload = struct.pack(">HHHHHH", row, 0x0100, 1, 0, 0, 0) + name + b"\0\1\0\1"
    return pcap.Packet(when * 1_000_000 + row % 1000, client, 40000 + row, RESOLVER, 53, payload, pcap.UDP)


def render(world: World) -> dict[str, bytes]:
    macs = {address: mac for address, mac, _ in world.hosts}
    packets = [p for s in world.sessions for p in packets_of(s, macs[s.client])]
    packets += [_query(row, *entry[:3]) for row, entry in enumerate(world.dns)]
    packets.sort(key=lambda p: (p.time_us, p.source, p.source_port, p.flags, p.seq))
    size = -(-len(packets) // world.files)
    tree = {
        f"input/capture/part-{i + 1:02d}.pcap": pcap.write(packets[i * size : (i + 1) * size])
        for i in range(world.files)
    }
    tree["input/case.json"] = json.dumps({"case": world.case, "capture_files": world.files}, indent=2).encode() + b"\n"
    tree["input/reference/sites.csv"] = csv_table.table(("domain", "address", "upload_allowed"), world.sites)
    tree["input/reference/hosts.csv"] = csv_table.table(("address", "mac", "owner"), world.hosts)
    tree["input/reference/indicators.csv"] = csv_table.table(("domain", "added_on", "retired_on"), world.indicators)
    sync = world.dns[0][0] - 60
    beats = [sync + i * 3600 for i in range(6)]
    dns = sorted(
        [(utc(t), c, q, a, "") for t, c, q, a in world.dns] + [(utc(t), "-", "ntp-sync", "-", utc(t)) for t in beats]
    )
    auth = sorted(
        [(utc(t), a, u, r, "") for t, a, u, r in world.auth] + [(utc(t), "-", "ntp-sync", "-", utc(t)) for t in beats]
    )
    tree["input/logs/dns.csv"] = csv_table.table(("time", "client", "query", "answer", "reference_time"), dns)
    tree["input/logs/auth.csv"] = csv_table.table(("time", "source", "user", "result", "reference_time"), auth)
    lines = []
    for s in world.sessions:
        if s.request.startswith("POST"):
            body = s.request.split("\r\n\r\n", 1)[1] if s.kept else None
            path = s.request.split(" ", 2)[1]
            lines.append(json.dumps({"client": s.client, "client_port": s.port, "path": path, "body": body}))
    tree["input/logs/uploads.jsonl"] = ("\n".join(lines) + "\n").encode()
    return tree


def recover(tree: Tree) -> World:
    def table(path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(tree[path].decode())))

    streams: dict[tuple[str, int], list[pcap.Packet]] = {}
    case = json.loads(tree["input/case.json"])
    for path in sorted(p for p in tree if p.endswith(".pcap")):
        for p in pcap.read(tree[path]):
            if p.protocol == pcap.TCP:
                key = (p.source, p.source_port) if p.target_port == 80 else (p.target, p.target_port)
                streams.setdefault(key, []).append(p)
    kept = {
        (r["client"], r["client_port"]): r["body"] is not None
        for r in map(json.loads, tree["input/logs/uploads.jsonl"].splitlines())
    }
    sessions = []
    for (client, port), packets in streams.items():
        up = b"".join(p.payload for p in packets if p.source == client).decode()
        down = b"".join(p.payload for p in packets if p.source != client).decode()
        sessions.append(
            Session(client, port, packets[0].target, packets[0].time_us, up, down, kept.get((client, port), False))
        )
    sessions.sort(key=lambda s: (s.start_us, s.client))
    return World(
        case["case"],
        tuple((r["domain"], r["address"], r["upload_allowed"]) for r in table("input/reference/sites.csv")),
        tuple((r["domain"], r["added_on"], r["retired_on"]) for r in table("input/reference/indicators.csv")),
        tuple((r["address"], r["mac"], r["owner"]) for r in table("input/reference/hosts.csv")),
        tuple(sorted((seconds(r["time"]), r["client"], r["query"], r["answer"]) for r in table("input/logs/dns.csv") if r["client"] != "-")),
        tuple((seconds(r["time"]), r["source"], r["user"], r["result"]) for r in table("input/logs/auth.csv") if r["source"] != "-"),
        tuple(sessions),
        case["capture_files"],
    )  # fmt: skip


def plan(world: World, draw: Draw) -> tuple[Defect, ...]:
    tree = render(world)
    parts = [s for s in world.sessions if s.kept and "X-Part" in s.request]
    lost = parts[0]
    gone = [p for p in packets_of(lost, "") if p.source == lost.client and len(p.payload)][1]
    path = next(
        n
        for n, d in tree.items()
        if n.endswith(".pcap")
        and any((p.source_port, p.seq, p.payload) == (gone.source_port, gone.seq, gone.payload) for p in pcap.read(d))
    )
    missing = Defect(
        "missing_packets",
        path,
        {"packets": [[gone.source, gone.source_port, gone.seq]], "streams": [f"{lost.client}:{lost.port}"]},
        "one frame of an upload was not captured",
    )
    out = [missing]
    at = draw.integer(1, world.files - 1)
    twice = f"input/capture/part-{at:02d}.pcap"
    count = len(pcap.split(tree[twice])) - 2
    out.append(
        Defect(
            "duplicate_packets",
            twice,
            {"indexes": sorted(draw.sample(range(count), draw.integer(3, 9)))},
            "a mirror port repeated frames",
        )
    )
    for name in ("dns", "auth"):
        shift = draw.choice([-1, 1]) * draw.integer(45, 1500)
        out.append(
            Defect(
                "clock_skew",
                f"input/logs/{name}.csv",
                {"column": "time", "seconds": shift, "format": "%Y-%m-%dT%H:%M:%SZ"},
                f"the clock of the {name} log is off",
            )
        )
    reopened = next(i for i, r in enumerate(world.indicators) if r[2])
    out.append(
        Defect(
            "stale_copy",
            "input/reference/indicators.csv",
            {"copy": "input/reference/indicators.previous.csv", "edits": [[reopened, "retired_on", ""]]},
            "last month's indicators",
        )
    )
    uploads = [json.loads(x) for x in tree["input/logs/uploads.jsonl"].splitlines()]
    other = next(
        i for i, u in enumerate(uploads) if (u["client"], u["client_port"]) == (parts[-1].client, parts[-1].port)
    )
    out.append(
        Defect(
            "contradictory_record",
            "input/logs/uploads.jsonl",
            {"column": "body", "rows": [other], "values": [uploads[other]["body"][::-1]]},
            "the log mangled a body that the capture has whole",
        )
    )
    chosen = set(draw.sample(range(len(out)), draw.integer(2, len(out))))
    return tuple(d for i, d in enumerate(out) if i in chosen)


def prompt(world: World, defects: tuple[Defect, ...]) -> Prompt:
    return Prompt(
        goal="A document left the network. From packet captures and logs, rebuild what happened, name the findings, and recover the stolen document byte for byte.",
        inputs={
            "input/capture/part-*.pcap": "libpcap captures of one office, in order; TCP port 80 and DNS questions",
            "input/logs/dns.csv": "answers of the resolver (with clock synchronisations)",
            "input/logs/auth.csv": "sign-in attempts (with clock synchronisations)",
            "input/logs/uploads.jsonl": "one line per POST in order of start; `body` is null where it was not kept",
            "input/reference/": "known sites, hosts, indicators",
            "input/case.json": "the case",
        },
        requirements=(
            "A frame whose bytes equal those of an earlier frame is a duplicate: ignore it, count it in `duplicate_packets`.",
            "A session is a TCP connection, named `client:port`. Its request and response are the payloads in sequence-number order. A client stream with a gap (up to the FIN's sequence number) is incomplete: list it in `incomplete_streams` (order of sessions) and take its body, all after the blank line, from the upload log.",
            "Rows `ntp-sync` carry the true time in `reference_time`. offset = time - reference_time in whole seconds, constant per log; subtract it from every time of that log. Captures are true UTC.",
            "sessions.csv: columns session, server_ip, domain, start_utc, bytes_up, bytes_down, status; ordered by time of the SYN. Bytes count the whole streams including HTTP heads (of an incomplete one, its head and the body of the upload log); status is the HTTP code. domain: the Host line, else the last name that the client asked for (corrected time not after the SYN) with that address as answer. All times: YYYY-MM-DDTHH:MM:SSZ, fractions cut off.",
            "Findings, per client and domain unless said: `indicator-contact`, any session with a domain that is a listed indicator on the day of the captures (added_on <= day, and retired_on empty or > day); `beacon`, at least 4 sessions with a domain where uploads aren't allowed, whose gaps between SYNs differ by at most 5 s (largest minus smallest); `exfiltration`, POST bodies of at least 2000 bytes in total answered with 201, to a domain where uploads aren't allowed (first, last and count over those POSTs only); `credential-guessing`, for each successful sign-in preceded within 600 s by at least 5 failures of the same source and user (client = source, subject = user, first = first such failure, last = the success, count = failures). subject is otherwise the domain, count the sessions. Domains absent from sites.csv allow no uploads.",
            "Order findings by first_utc, kind, client, subject; ids F-01, F-02, … timeline.json has `first` and `last` of every finding ordered by time_utc, finding, event.",
            "The document was uploaded in parts (`X-Part: i/n`); only parts answered with 201 count. Each body is base64; the decoded parts in order, concatenated, are XORed with the repeated key bytes (`key=` in hexadecimal, in a response of the beacon). Its name is the last piece of the upload's path. Write the plain bytes to artifact.bin; sha256 and md5 are of them.",
        ),
        authority=(
            "A complete stream of the capture wins over the upload log.",
            "indicators.csv is in force; any file named previous is superseded.",
        ),
    )
