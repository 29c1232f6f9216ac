#!/usr/bin/env python3
"""Writes shards_padded.hdf5 and shards_packed.hdf5 beside itself, with h5py, in the layouts of the replaced scripts:
create_pretraining_data and pack_pretraining_data_pytorch of HabanaAI/Model-References 1.15.0; and the same arrays in other
types and storage, as shards_padded_FORM.hdf5 and shards_packed_FORM.hdf5.  All hold the same 24 sequences, which
tests/data/test_shard_loader.c makes again by the same formulas.  usage: make_shards.py [DIRECTORY]
"""
import os
import sys

import numpy as np

N, S, P, PACKED = 24, 32, 6, 3
CLS, SEP, MASK, FIRST_WORD, WORDS = 1, 2, 3, 4, 36
# how h5py stores an array: as the replaced scripts do, in one piece of wide integers, or in pieces of big-endian ones
FORMS = {"": {"compression": "gzip"}, "_wide": {"dtype": "i8"},
         "_big_endian": {"dtype": ">i4", "chunks": True, "shuffle": True, "fletcher32": True}}


def sequence(i):
    """Sequence i: ids, segments, places and labels of its predictions, next-sentence label."""
    n = 5 + i * 7 % 13
    n_first = 3 + i % (n - 4)
    ids = [FIRST_WORD + (i * 11 + j * 5) % WORDS for j in range(n)]
    ids[0], ids[n_first - 1], ids[n - 1] = CLS, SEP, SEP
    places = [j for j in range(1, n - 1) if j != n_first - 1 and (i + j) % 6 == 0][: P - 1]
    labels = [ids[j] for j in places]
    for j in places:
        ids[j] = MASK
    return ids, [0] * n_first + [1] * (n - n_first), places, labels, i % 2


def packs():
    """The sequences in order, up to three together as long as they fit."""
    rows, row, length = [], [], 0
    for i in range(N):
        n = len(sequence(i)[0])
        if row and (length + n > S or len(row) == PACKED):
            rows.append(row)
            row, length = [], 0
        row.append(i)
        length += n
    return rows + [row]


def write(path, arrays):
    import h5py  # here, so that others can have the sequences without it

    for form, how in FORMS.items():
        with h5py.File(path.replace(".hdf5", form + ".hdf5"), "w") as f:
            for name, (values, dtype) in arrays.items():
                f.create_dataset(name, data=values, **({"dtype": dtype} | how))


def write_padded(path):
    a = {"input_ids": (np.zeros((N, S), int), "i4"), "input_mask": (np.zeros((N, S), int), "i1"),
         "segment_ids": (np.zeros((N, S), int), "i1"), "masked_lm_positions": (np.zeros((N, P), int), "i4"),
         "masked_lm_ids": (np.zeros((N, P), int), "i4"), "next_sentence_labels": (np.zeros(N, int), "i1")}
    for i in range(N):
        ids, segments, places, labels, is_random = sequence(i)
        a["input_ids"][0][i, : len(ids)] = ids
        a["input_mask"][0][i, : len(ids)] = 1
        a["segment_ids"][0][i, : len(ids)] = segments
        a["masked_lm_positions"][0][i, : len(places)] = places
        a["masked_lm_ids"][0][i, : len(places)] = labels
        a["next_sentence_labels"][0][i] = is_random
    write(path, a)


def write_packed(path):
    rows = packs()
    n, p = len(rows), P + 3
    a = {"input_ids": (np.zeros((n, S), int), "i4"), "input_mask": (np.zeros((n, S), int), "i4"),
         "segment_ids": (np.zeros((n, S), int), "i1"), "positions": (np.zeros((n, S), int), "i4"),
         "masked_lm_positions": (np.zeros((n, p), int), "i4"), "masked_lm_ids": (np.zeros((n, p), int), "i4"),
         "next_sentence_positions": (np.zeros((n, PACKED), int), "i4"),
         "next_sentence_labels": (np.zeros((n, PACKED), int), "i1"),
         "next_sentence_weights": (np.zeros((n, PACKED), int), "i4")}
    for r, row in enumerate(rows):
        at, m = 0, 0
        for k, i in enumerate(row):
            ids, segments, places, labels, is_random = sequence(i)
            end = at + len(ids)
            a["input_ids"][0][r, at:end] = ids
            a["input_mask"][0][r, at:end] = k + 1
            a["segment_ids"][0][r, at:end] = segments
            a["positions"][0][r, at:end] = range(len(ids))
            a["masked_lm_positions"][0][r, m : m + len(places)] = [at + j for j in places]
            a["masked_lm_ids"][0][r, m : m + len(places)] = labels
            a["next_sentence_positions"][0][r, k] = at
            a["next_sentence_labels"][0][r, k] = is_random
            a["next_sentence_weights"][0][r, k] = 1
            at, m = end, m + len(places)
    write(path, a)


if __name__ == "__main__":
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    write_padded(os.path.join(directory, "shards_padded.hdf5"))
    write_packed(os.path.join(directory, "shards_packed.hdf5"))
