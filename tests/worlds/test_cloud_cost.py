"""The image and the prices, each against what was put in by hand."""

from __future__ import annotations

import struct
import zlib
from types import SimpleNamespace

import pytest

from workbench.worlds.formats import pixel_font, png
from workbench.worlds.generators.cloud_cost import alternative, answers, dashboard, reference, world

PALETTE = [(255, 255, 255), (0, 0, 0)]
FINDINGS = (
    world.Finding("nat-0af31c9d", "nat_gateway", "nat-gw-web-c1", "OPEN", 3241),
    world.Finding("eip-52b7e401", "elastic_ip", "eip-mail-a2", "RESOLVED", 365),
    world.Finding("cwl-00d1bgq8", "cloudwatch_log_group", "/aws/lambda/old-b7", "OPEN", 6460),
)


def test_both_readers_find_the_open_findings_of_a_drawn_dashboard():
    shown = SimpleNamespace(
        account="123456789012", services=(("EC2", 5), ("VPC", 123456)), findings=FINDINGS, margin=(11, 9)
    )
    image = dashboard.render(shown)
    wanted = [("nat-0af31c9d", "nat-gw-web-c1", 32.41), ("cwl-00d1bgq8", "/aws/lambda/old-b7", 64.6)]
    assert [(f["resource_id"], f["name"], f["monthly_cost"]) for f in reference._findings(image)] == wanted
    assert [(f[0], f[3], float(f[4])) for f in alternative._dashboard(image)] == wanted


def test_no_two_glyphs_look_alike_even_without_their_blank_columns():
    assert len(set(pixel_font.GLYPHS.values())) == len(pixel_font.GLYPHS)
    trimmed = {
        alternative._key(["".join(str(bits >> c & 1) for bits in g) for c in range(4, -1, -1)])
        for g in pixel_font.GLYPHS.values()
    }
    assert len(trimmed) == len(pixel_font.GLYPHS)


def test_png_comes_back_and_says_what_is_wrong():
    rows = [[0, 1, 1, 0, 1], [1, 0, 0, 0, 0]]
    data = png.write(rows, PALETTE)
    assert png.read(data) == (rows, PALETTE)
    with pytest.raises(ValueError, match="damaged"):
        png.read(data.replace(b"PLTE\xff", b"PLTE\xfe"))
    with pytest.raises(ValueError, match="signature"):
        png.read(b"GIF89a")


def test_png_row_filters():
    """Rows written by another encoder: filters sub, up, average and Paeth over grey values."""
    raw = bytes([1, 10, 5, 250]) + bytes([2, 1, 1, 1]) + bytes([3, 6, 1, 1]) + bytes([4, 1, 1, 1])
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 3, 4, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    data = png.SIGNATURE + b"".join(png._chunk(kind, body) for kind, body in chunks)
    assert png.read(data)[0] == [[10, 15, 9], [11, 16, 10], [11, 14, 13], [12, 15, 15]]


def test_costs_are_rounded_once_each():
    """7,734 GB at 0.023 and 0.0125 dollars: the paper's own example of a cent between the three figures."""
    bucket = SimpleNamespace(kind="s3", size_gb=7734)
    priced = SimpleNamespace(
        prices=(("s3-standard", "s3_storage", "gb_month", 23000), ("s3-standard-ia", "s3_storage", "gb_month", 12500))
    )
    current, projected = answers.micro(priced, bucket)
    assert [answers.money(answers.cents(v)) for v in (current, projected, current - projected)] == [
        "177.88",
        "96.68",
        "81.21",
    ]
