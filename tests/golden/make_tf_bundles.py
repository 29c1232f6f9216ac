#!/usr/bin/env python3
"""Makes tests/golden/tf_bundles.safetensors: checkpoints as TensorFlow writes them, and the tensors in them.

The tensor "CASE/FILE" (U8) is a file, "CASE:NAME" is what the tensor NAME must read as; "snappy:I" is what cramjam's Snappy
makes of "snappy=I".  TensorFlow does not compress indexes any more, as it did when Google published its checkpoints: the case
`compressed` is one of its indexes, with blocks compressed by that Snappy.

Run: python make_tf_bundles.py   (needs tensorflow-cpu, cramjam, safetensors; made with tensorflow 2.21)
"""
import pathlib
import struct
import tempfile

import cramjam
import numpy as np
import tensorflow as tf
from safetensors.numpy import save_file

rng = np.random.default_rng(7)
out = {}


def keep(case, directory, tensors):
    for file in sorted(pathlib.Path(directory).iterdir()):
        out[f"{case}/{file.name}"] = np.frombuffer(file.read_bytes(), dtype=np.uint8)
    for name, value in tensors.items():
        value = np.asarray(value)
        # safetensors for numpy has no bf16: its bits as those of fp16
        out[f"{case}:{name}"] = value.view(np.float16) if value.dtype == tf.bfloat16.as_numpy_dtype else value


def save(case, shards, slices=None):
    """`shards` are dicts of tensors, each saved as a checkpoint of its own and all merged to one."""
    with tempfile.TemporaryDirectory() as aside, tempfile.TemporaryDirectory() as d:
        parts = [f"{aside}/part_{i}" for i in range(len(shards))]
        for i, tensors in enumerate(shards):
            where = [(slices or {}).get((i, n), "") for n in tensors]
            tf.raw_ops.SaveV2(prefix=parts[i], tensor_names=[n.split("@")[0] for n in tensors], shape_and_slices=where,
                              tensors=[tf.constant(v) for v in tensors.values()])
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=f"{d}/model.ckpt-20", delete_old_dirs=False)
        readable = {n: v for s in shards for n, v in s.items() if not slices and np.asarray(v).dtype.kind not in "SU"}
        keep(case, d, readable)


f32 = lambda *shape: rng.standard_normal(shape).astype(np.float32)
every = {
    "f32": f32(2, 3), "f64": rng.standard_normal(3), "f16": f32(4).astype(np.float16),
    "bf16": f32(2, 2).astype(tf.bfloat16.as_numpy_dtype), "i64": np.array([-1, 2**40]), "i32": np.array([[7, -8]], np.int32),
    "u8": np.arange(5, dtype=np.uint8), "bool": np.array([True, False, True]), "scalar": np.float32(2.5), "empty": f32(0, 3),
}
save("types", [{**every, "strings": np.array([b"a", b"bc"])}])

bert = {"global_step": np.int64(20), "cls/squad/output_weights": f32(2, 4), "cls/squad/output_bias": f32(2)}
for i in range(3):
    for part in ("query", "key", "value"):
        bert[f"bert/encoder/layer_{i}/attention/self/{part}/kernel"] = f32(4, 4)
        bert[f"bert/encoder/layer_{i}/attention/self/{part}/bias"] = f32(4)
        bert[f"bert/encoder/layer_{i}/attention/self/{part}/kernel/adam_m"] = f32(4, 4)
names = sorted(bert)
save("sharded", [{n: bert[n] for n in names[i::3]} for i in range(3)])
save("sliced", [{"whole": f32(2), "parts@0": f32(2, 2)}, {"parts@1": f32(2, 2)}],
     {(0, "parts@0"): "4 2 0,2:0,2", (1, "parts@1"): "4 2 2,2:0,2"})


def varint(v):
    b = b""
    while v >= 0x80:
        b, v = b + bytes([v & 0x7F | 0x80]), v >> 7
    return b + bytes([v])


def read_varint(b, at):
    v = shift = 0
    while True:
        v, shift, at = v | (b[at] & 0x7F) << shift, shift + 7, at + 1
        if b[at - 1] < 0x80:
            return v, at


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def entries(block):
    """Keys and values of a block."""
    end, at, key = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0], 0, b""
    while at < end:
        (shared, at), (rest, at2), = read_varint(block, at), read_varint(block, read_varint(block, at)[1])
        size, at = read_varint(block, at2)
        key, at = key[:shared] + block[at : at + rest], at + rest
        yield key, block[at : at + size]
        at += size


def block_of(pairs):
    """The reverse, a restart every 16 keys."""
    body, restarts, last = b"", [], b""
    for i, (key, value) in enumerate(pairs):
        shared = 0
        if i % 16 == 0:
            restarts.append(len(body))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        body += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return body + b"".join(struct.pack("<I", r) for r in restarts or [0]) + struct.pack("<I", len(restarts or [0]))


def compress(index, per_block):
    """The same table, in blocks of `per_block` entries, each compressed."""
    _, at = read_varint(index, len(index) - 48)
    _, at = read_varint(index, at)
    (begin, at), pairs = read_varint(index, at), []
    size, _ = read_varint(index, at)
    for _, handle in entries(index[begin : begin + size]):
        b, at = read_varint(handle, 0)
        pairs += entries(index[b : b + read_varint(handle, at)[0]])
    made, handles = b"", []

    def put(block, compressed):
        nonlocal made
        block = bytes(cramjam.snappy.compress_raw(block)) if compressed else block
        handle = varint(len(made)) + varint(len(block))
        crc = crc32c(block + bytes([compressed]))
        made += block + bytes([compressed]) + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
        return handle

    for i in range(0, len(pairs), per_block):
        handles.append((pairs[min(i + per_block, len(pairs)) - 1][0], put(block_of(pairs[i : i + per_block]), True)))
    meta, top = put(block_of([]), False), put(block_of(handles), True)
    return made + (meta + top).ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


for key in [k for k in out if k.startswith("sharded")]:
    value = out[key]
    if key.endswith(".index"):
        value = np.frombuffer(compress(value.tobytes(), 10), dtype=np.uint8)
    out[key.replace("sharded", "compressed")] = value

text = (pathlib.Path(__file__).parent / "make_tf_bundles.py").read_bytes()
plain = [b"", b"a", b"ab" * 4000, text, bytes(rng.integers(0, 256, 70, dtype=np.uint8)), bytes(200) + text[:5000] + bytes(300),
         bytes(rng.integers(0, 4, 5000, dtype=np.uint8))]
for i, p in enumerate(plain):
    out[f"snappy={i}"] = np.frombuffer(p, dtype=np.uint8)
    out[f"snappy:{i}"] = np.frombuffer(bytes(cramjam.snappy.compress_raw(p)), dtype=np.uint8)

save_file(out, pathlib.Path(__file__).parent / "tf_bundles.safetensors")
