#!/usr/bin/env python3
"""Makes tests/golden/streams.safetensors: compressed files for tests/io/test_byte_stream.c.

Each tensor (U8) is a file.  text.bz2, text.gz: 20,000 lines "line I of the test", I modulo 997, in blocks of 100 kB; many.bz2, many.gz: the
same in several streams, two of them empty; chance.bz2: three blocks of which the first two hold the bits that mark the beginning of a
block and the end of a stream, which a compressor makes once in 10^14 bits; chance: what it unpacks to; aligned.bz2: the first lines of the
text, as many as make a file whose last bit is that of the check sum.

Run: python make_streams.py   (needs numpy, safetensors)
"""
import bz2
import gzip
import pathlib

import numpy as np
from safetensors.numpy import save_file

text = b"".join(b"line %d of the test\n" % (i % 997) for i in range(20000))
cuts = [0, 100_000, 100_000, 237_111, len(text)]
parts = [text[a:b] for a, b in zip(cuts, cuts[1:])] + [b""]
out = {
    "text.bz2": bz2.compress(text, 1),
    "many.bz2": b"".join(bz2.compress(p, 1) for p in parts),
    "text.gz": gzip.compress(text, mtime=0),
    "many.gz": b"".join(gzip.compress(p, mtime=0) for p in parts),
}

BLOCK, END = 0x314159265359, 0x177245385090


class Bits:
    def __init__(self):
        self.text = ""

    def put(self, value, n):
        self.text += format(value, f"0{n}b")

    def bytes(self):
        padded = self.text + "0" * (-len(self.text) % 8)
        return int(padded, 2).to_bytes(len(padded) // 8, "big")


def crc32(data):
    """bzip2's: the polynomial of zlib's, highest bit first."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7 if crc >> 31 else crc << 1) & 0xFFFFFFFF
    return crc ^ 0xFFFFFFFF


def unpack(symbols):
    """What a block of these symbols, none a run, unpacks to: move to front, Burrows-Wheeler from row 0, runs."""
    order, last = list(range(256)), []
    for s in symbols:
        byte = order.pop(s - 1)
        order.insert(0, byte)
        last.append(byte)
    row = sorted(range(len(last)), key=lambda i: (last[i], i))[0]
    rows = sorted(range(len(last)), key=lambda i: (last[i], i))
    mixed = []
    for _ in last:
        mixed.append(last[row])
        row = rows[row]
    data, run, i = b"", 0, 0
    while i < len(mixed):
        data += bytes([mixed[i]])
        run = run + 1 if i > 0 and run > 0 and mixed[i] == mixed[i - 1] else 1
        i += 1
        if run == 4 and i < len(mixed):
            data, run, i = data + bytes([mixed[i - 1]]) * mixed[i], 0, i + 1
    return data


def put_block(bits, codes):
    """A block whose compressed data are these bytes, each at most 253: two equal tables give symbols 2 to 255 the codes of 8
    bits in order, and the other four codes of 9 bits."""
    symbols = [c + 2 for c in codes]
    data = unpack(symbols)
    crc = crc32(data)
    bits.put(BLOCK, 48)
    bits.put(crc, 32)
    bits.put(0, 1 + 24)  # not randomised; row 0
    bits.put(0xFFFF, 16)
    for _ in range(16):
        bits.put(0xFFFF, 16)
    n_selectors = len(symbols) // 50 + 1
    bits.put(2, 3)
    bits.put(n_selectors, 15)
    bits.put(0, n_selectors)
    for _ in range(2):
        lengths = [8 if 2 <= s <= 255 else 9 for s in range(258)]
        bits.put(lengths[0], 5)
        for before, now in zip([lengths[0]] + lengths, lengths):
            bits.put({0: 0b0, 1: 0b100, -1: 0b110}[now - before], 1 if now == before else 3)
    for c in codes:
        bits.put(c, 8)
    bits.put(511, 9)
    return data, crc


def put_stream(blocks):
    bits, unpacked, combined = Bits(), b"", 0
    bits.put(int.from_bytes(b"BZh1", "big"), 32)
    for codes in blocks:
        data, crc = put_block(bits, codes)
        unpacked += data
        combined = (combined << 1 & 0xFFFFFFFF | combined >> 31) ^ crc
    bits.put(END, 48)
    bits.put(combined, 32)
    file = bits.bytes()
    assert bz2.decompress(file) == unpacked
    return file, unpacked


def is_aligned(file):
    return format(END, "048b") == bin(int.from_bytes(file, "big"))[2:][-80:-32]


out["aligned.bz2"] = next(f for f in (bz2.compress(text[:n], 1) for n in range(1000, 2000)) if is_aligned(f))

plain = bytes((i * 37 + 11) % 251 for i in range(90))
around = lambda mark: plain[:31] + mark.to_bytes(6, "big") + plain[40:]
out["chance.bz2"], out["chance"] = put_stream([around(BLOCK), around(END), plain])
out = {name: np.frombuffer(data, dtype=np.uint8) for name, data in out.items()}
save_file(out, pathlib.Path(__file__).with_name("streams.safetensors"))
