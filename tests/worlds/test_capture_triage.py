"""Worked by hand: one frame's bytes, one short stream with a repeated and a lost frame."""

from __future__ import annotations

import pytest

from workbench.worlds import Defect, WorldError, corruption
from workbench.worlds.formats import pcap
from workbench.worlds.generators.capture_triage import reference
from workbench.worlds.generators.capture_triage.scene import Session, cipher, packets_of

SESSION = Session("10.0.0.9", 40000, "203.0.113.7", 1_700_000_000_000_000, "GET / HTTP/1.0\r\n\r\n" + "a" * 1200, "HTTP/1.1 200 OK\r\n\r\n", True)  # fmt: skip


def test_internet_checksum_of_rfc_1071():
    assert pcap.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D


def test_frame_has_valid_checksums_and_reads_back():
    packet = pcap.Packet(1_700_000_000_000_001, "10.0.0.9", 40000, "10.0.0.53", 53, b"abc", pcap.UDP)
    raw = pcap.frame(packet)
    assert len(raw) == 14 + 20 + 8 + 3
    assert pcap.checksum(raw[14:34]) == 0
    assert pcap.read(pcap.write([packet])) == [packet]


def test_cut_and_foreign_captures():
    data = pcap.write(packets_of(SESSION, ""))
    assert len(pcap.split(data[:-1])) == len(pcap.split(data)) - 1
    with pytest.raises(ValueError, match="magic"):
        pcap.split(b"\n\r\r\n" + data)


def test_repeated_and_lost_frames_are_undone_exactly():
    packets = packets_of(SESSION, "")
    tree = {"input/a.pcap": pcap.write(packets)}
    # handshake (3 with data's first), 1218 bytes in segments of 536: 536 + 536 + 146
    assert [len(p.payload) for p in packets] == [0, 0, 536, 536, 146, 19, 0, 0]
    lost = Defect("missing_packets", "input/a.pcap", {"packets": [["10.0.0.9", 40000, packets[3].seq]]})
    twice = Defect("duplicate_packets", "input/a.pcap", {"indexes": [0, 5]})
    damaged, sealed = corruption.apply_all(tree, [lost, twice])
    assert len(pcap.split(damaged["input/a.pcap"])) == 8 - 1 + 2
    assert corruption.invert_all(damaged, sealed) == tree
    streams, repeated = reference._merge(damaged)
    assert repeated == 2
    sent = [p for p in streams["10.0.0.9", 40000] if p.source == "10.0.0.9"]
    assert reference._stream(sent) == (SESSION.request[:536].encode() + b"a" * 146, False)
    with pytest.raises(WorldError, match="0 of the 1"):
        corruption.apply(damaged, lost)


def test_repeating_key():
    assert cipher(b"\x00\x01\x02\x03\x04", bytes.fromhex("ff0f")) == bytes.fromhex("ff0efd0cfb")
