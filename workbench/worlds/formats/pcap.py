"""Packet captures: classic libpcap files of Ethernet II / IPv4 / TCP or UDP frames (link type 1), written and read.

Layouts follow the libpcap file format, RFC 791, RFC 768 and RFC 9293. IPv6, fragments, VLAN tags and options are outside the subset:
the reader skips such frames. Times are whole microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

LIMIT = 64 << 20  # bytes of one capture
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
TCP, UDP = 6, 17
HEADER = struct.Struct("<IHHiIII")
RECORD = struct.Struct("<IIII")


@dataclass(frozen=True)
class Packet:
    """One frame. seq, ack and flags are 0 for UDP."""

    time_us: int
    source: str
    source_port: int
    target: str
    target_port: int
    payload: bytes
    protocol: int = TCP
    seq: int = 0
    ack: int = 0
    flags: int = 0
    source_mac: str = "02:00:00:00:00:01"
    target_mac: str = "02:00:00:00:00:02"
    identification: int = 0


def _address(dotted: str) -> bytes:
    return bytes(int(part) for part in dotted.split("."))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(packet: Packet) -> bytes:
    """The packet as an Ethernet frame, checksums filled in."""
    ends = _address(packet.source) + _address(packet.target)
    ports = struct.pack(">HH", packet.source_port, packet.target_port)
    if packet.protocol == TCP:
        rest = struct.pack(">IIBBHHH", packet.seq, packet.ack, 5 << 4, packet.flags, 64240, 0, 0)
        spot = 16
    else:
        rest = struct.pack(">HH", 8 + len(packet.payload), 0)
        spot = 6
    segment = bytearray(ports + rest + packet.payload)
    pseudo = ends + struct.pack(">BBH", 0, packet.protocol, len(segment))
    struct.pack_into(">H", segment, spot, checksum(pseudo + bytes(segment)) or 0xFFFF)
    head = bytearray(
        struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), packet.identification, 0x4000, 64, packet.protocol, 0)
        + ends
    )
    struct.pack_into(">H", head, 10, checksum(bytes(head)))
    return _mac(packet.target_mac) + _mac(packet.source_mac) + b"\x08\x00" + bytes(head) + bytes(segment)


def write(packets: Iterable[Packet]) -> bytes:
    return join((p.time_us, frame(p)) for p in packets)


def join(records: Iterable[tuple[int, bytes]]) -> bytes:
    """A capture of (time in microseconds, frame) records, little-endian, version 2.4."""
    out = [HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for time_us, data in records:
        out.append(RECORD.pack(time_us // 1_000_000, time_us % 1_000_000, len(data), len(data)))
        out.append(data)
    return b"".join(out)


def split(data: bytes) -> list[tuple[int, bytes]]:
    """The (time in microseconds, frame) records. Raises ValueError for what is no capture; a cut last record is dropped."""
    if len(data) > LIMIT:
        raise ValueError(f"a capture of {len(data)} bytes; at most {LIMIT} are read")
    if len(data) < 24:
        raise ValueError("too short for the header of a packet capture")
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(data[:4])
    if order is None:
        raise ValueError("not a microsecond libpcap capture (magic a1b2c3d4)")
    record, at, out = struct.Struct(order + "IIII"), 24, []
    while at + 16 <= len(data):
        seconds, micros, size, _ = record.unpack_from(data, at)
        if at + 16 + size > len(data):
            break
        out.append((seconds * 1_000_000 + micros, data[at + 16 : at + 16 + size]))
        at += 16 + size
    return out


def _hex(mac: bytes) -> str:
    return ":".join(f"{b:02x}" for b in mac)


def parse(time_us: int, data: bytes) -> Packet | None:
    """The frame's packet; None for anything outside the subset."""
    if len(data) < 34 or data[12:14] != b"\x08\x00" or data[14] != 0x45:
        return None
    total, identification = struct.unpack_from(">HH", data, 16)
    protocol, source, target = data[23], data[26:30], data[30:34]
    body = data[34 : 14 + total]
    if len(body) < 8:
        return None
    ports = struct.unpack_from(">HH", body)
    seq = ack = flags = 0
    if protocol == TCP and len(body) >= 20:
        seq, ack, offset, flags = struct.unpack_from(">IIBB", body, 4)
        payload = body[(offset >> 4) * 4 :]
    elif protocol == UDP:
        payload = body[8:]
    else:
        return None
    ends = [".".join(map(str, address)) for address in (source, target)]
    macs = (_hex(data[6:12]), _hex(data[:6]))
    return Packet(
        time_us, ends[0], ports[0], ends[1], ports[1], payload, protocol, seq, ack, flags, *macs, identification
    )  # fmt: skip


def read(data: bytes) -> list[Packet]:
    """The packets inside the subset, in file order. Raises ValueError for what is no capture."""
    return [p for time_us, raw in split(data) if (p := parse(time_us, raw)) is not None]
