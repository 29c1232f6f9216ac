#!/usr/bin/env python3
"""kiln's HDF5 shards in h5py, and h5py's in kiln.  Every record that `kiln prepare --format hdf5` writes is taken apart as
the replaced scripts' readers do it; the same arrays written again by h5py, with its defaults and with other integer types
and layouts, must train to the same weights byte for byte.  usage: check_h5py.py KILN WORK_DIRECTORY
WORK_DIRECTORY holds corpus.txt, vocab.txt and config.json.

The goldens beside this script are checked too; with a third argument, --make, those of tests/data/test_shard_goldens.c are
made instead: kiln's files, taken apart in the same way, then written again by h5py."""
import filecmp
import glob
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import h5py
import numpy as np

import make_shards

HERE = os.path.dirname(os.path.abspath(__file__))
S, P = 48, 8
PADDED = {"input_ids": "i4", "input_mask": "i1", "segment_ids": "i1", "masked_lm_positions": "i4", "masked_lm_ids": "i4",
          "next_sentence_labels": "i1"}
PACKED = {"input_ids": "i4", "input_mask": "i4", "segment_ids": "i1", "positions": "i4", "masked_lm_positions": "i4",
          "masked_lm_ids": "i4", "next_sentence_positions": "i4", "next_sentence_labels": "i1",
          "next_sentence_weights": "i4"}
METADATA = {"number_of_sequences_dropped", "number_of_strategies_utilized", "new_number_of_samples",
            "original_number_of_samples", "compression_ratio", "expected_speed_up", "theoretical_speed_up",
            "avg_seq_per_sample", "padding_tokens_packed_dataset", "padding_tokens_original_dataset",
            "packing_efficiency", "top_8_strategies"}


def run(*command):
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 0, f"{command}: {result.stderr}"


def load(path, wanted):
    with h5py.File(path, "r") as f:
        assert set(f) == set(wanted), f"{path}: {sorted(f)}"
        for name, dtype in wanted.items():
            assert f[name].dtype == np.dtype(dtype) and f[name].compression == "gzip", f"{path}: {name} {f[name].dtype}"
        return {name: f[name][:] for name in wanted}


def predictions(places, labels):
    """The list ends at the first position 0."""
    ends = np.flatnonzero(places == 0)
    n = ends[0] if len(ends) else len(places)
    return list(zip(places[:n].tolist(), labels[:n].tolist()))


def check_sequence(ids, segments, found, special):
    """One sequence with its predictions: [CLS] A [SEP] B [SEP], and what is masked where."""
    cls, sep, mask, n_words = special
    assert ids[0] == cls and ids[-1] == sep and (ids == sep).sum() >= 2
    assert list(segments) == sorted(segments) and set(segments) == {0, 1} and ids[np.flatnonzero(segments)[0] - 1] == sep
    assert 1 <= len(found) <= P and [p for p, _ in found] == sorted({p for p, _ in found})
    for place, label in found:
        assert 0 < place < len(ids) - 1 and 0 <= label < n_words
    return sum(ids[p] == mask for p, _ in found), len(found)


def check_padded(paths, special):
    n, masked = 0, np.zeros(2, int)
    for path in paths:
        a = load(path, PADDED)
        for r in range(len(a["input_ids"])):
            length = int(a["input_mask"][r].sum())
            assert (a["input_mask"][r] == (np.arange(S) < length)).all() and not a["input_ids"][r, length:].any()
            masked += check_sequence(a["input_ids"][r, :length], a["segment_ids"][r, :length],
                                     predictions(a["masked_lm_positions"][r], a["masked_lm_ids"][r]), special)
            assert a["next_sentence_labels"][r] in (0, 1)
            n += 1
    assert 0.74 < masked[0] / masked[1] < 0.86, f"{masked[0]} of {masked[1]} predictions are [MASK]"
    return n


def check_packed(paths, special):
    n_packs = n = 0
    for path in paths:
        a = load(path, PACKED)
        assert a["masked_lm_ids"].shape[1] == P + 3 and a["next_sentence_weights"].shape[1] == 3
        for r in range(len(a["input_ids"])):
            found, at = predictions(a["masked_lm_positions"][r], a["masked_lm_ids"][r]), 0
            for k in range(3):
                length = int((a["input_mask"][r] == k + 1).sum())
                assert a["next_sentence_weights"][r, k] == (length > 0)
                if length == 0:
                    continue
                assert a["next_sentence_positions"][r, k] == at
                assert (a["input_mask"][r, at:at + length] == k + 1).all()
                assert (a["positions"][r, at:at + length] == np.arange(length)).all()
                mine = [(p - at, label) for p, label in found if at <= p < at + length]
                check_sequence(a["input_ids"][r, at:at + length], a["segment_ids"][r, at:at + length], mine, special)
                found, at, n = found[len(mine):], at + length, n + 1
            assert not found and not a["input_mask"][r, at:].any()
            n_packs += 1
    return n_packs, n


def rewrite(source, target, wanted, **how):
    """The same values by h5py; `how` may change their types and layout."""
    os.makedirs(target)
    dtype = how.pop("dtype", None)
    for path in glob.glob(source + "/*.hdf5"):
        with h5py.File(os.path.join(target, os.path.basename(path)), "w") as f:
            for name, values in load(path, wanted).items():
                f.create_dataset(name, data=values, dtype=dtype or wanted[name], **how)
    if os.path.exists(source + "_metadata.json"):
        os.link(source + "_metadata.json", target + "_metadata.json")


def train(kiln, work, source):
    out = f"{source}_run"
    run(kiln, "pretrain", "--input_dir", source, "--vocab_file", f"{work}/vocab.txt", "--config_file",
        f"{work}/config.json", "--output_dir", out, "--train_batch_size", "16", "--gradient_accumulation_steps", "2",
        "--max_steps", "8", "--learning_rate", "1e-3", "--eval_steps", "0", "--disable_progress_bar")
    return f"{out}/ckpt_8/model.safetensors"


def same_files(a, b):
    """The same datasets, types, filters and values."""
    with h5py.File(a, "r") as f, h5py.File(b, "r") as g:
        return set(f) == set(g) and all(
            f[k].dtype == g[k].dtype and f[k].compression == g[k].compression and f[k].shuffle == g[k].shuffle
            and f[k].fletcher32 == g[k].fletcher32 and (f[k][:] == g[k][:]).all() for k in f)


def check_golden(work):
    """What make_shards.py writes."""
    os.makedirs(work)
    make_shards.write_padded(work + "/shards_padded.hdf5")
    make_shards.write_packed(work + "/shards_packed.hdf5")
    for path in glob.glob(work + "/*.hdf5"):
        name = os.path.basename(path)
        assert same_files(f"{HERE}/{name}", path), f"{name} is not what make_shards.py writes"


def check_metadata(path, n, n_packs):
    metadata = json.load(open(path))
    assert set(metadata) == METADATA and list(metadata) == sorted(metadata), sorted(metadata)
    assert n == metadata["original_number_of_samples"] and n_packs == metadata["new_number_of_samples"]
    assert abs(metadata["avg_seq_per_sample"] - n / n_packs) < 1e-9 and metadata["number_of_sequences_dropped"] == 0
    return metadata


def check_goldens_of_kiln(tool, work, make):
    """The files of `test_shard_goldens write`, taken apart, are the goldens; or become them."""
    os.makedirs(work)
    run(tool, "write", work)
    special = (1, 2, 3, 40)  # FIXTURE_CLS, FIXTURE_SEP, FIXTURE_MASK, VOCAB
    n = check_padded([f"{work}/padded/kiln_training_0.hdf5"], special)
    n_packs, n_packed = check_packed([f"{work}/packed/kiln_training_0.hdf5"], special)
    assert n == n_packed
    check_metadata(work + "/packed_metadata.json", n, n_packs)
    if make:
        shutil.copy(work + "/packed_metadata.json", HERE + "/kiln_packed_metadata.json")
    for form, wanted in (("padded", PADDED), ("packed", PACKED)):
        golden = f"{HERE}/kiln_{form}.hdf5"
        if make:
            rewrite(f"{work}/{form}", f"{work}/h5py_{form}", wanted, compression="gzip", shuffle=True)
            shutil.copy(f"{work}/h5py_{form}/kiln_training_0.hdf5", golden)
        assert same_files(golden, f"{work}/{form}/kiln_training_0.hdf5"), f"{golden} is not what kiln writes"


def main():
    kiln, work, *make = sys.argv[1:]
    tool = os.path.join(os.path.dirname(kiln), "tests", "test_shard_goldens")
    check_goldens_of_kiln(tool, work + "/goldens_of_kiln", bool(make))
    if make:
        return
    pieces = open(f"{work}/vocab.txt").read().split("\n")
    special = [pieces.index(p) for p in ("[CLS]", "[SEP]", "[MASK]")] + [len(pieces) - 1]
    check_golden(work + "/golden")
    for form, more in (("padded", ["--n_shards", "2"]), ("packed", ["--n_shards", "2", "--packed"])):
        run(kiln, "prepare", "--input", f"{work}/corpus.txt", "--vocab_file", f"{work}/vocab.txt", "--do_lower_case",
            "--input_format", "lines", "--one_sentence_per_line", "--format", "hdf5", "--max_seq_length", str(S),
            "--max_predictions_per_seq", str(P), "--short_seq_prob", "0.5", "--output_dir", f"{work}/{form}", *more)
    n = check_padded(sorted(glob.glob(f"{work}/padded/training/*.hdf5")), special)
    n_packs, n_packed = check_packed(sorted(glob.glob(f"{work}/packed/training/*.hdf5")), special)
    metadata = check_metadata(f"{work}/packed/training_metadata.json", n_packed, n_packs)
    assert n == n_packed, f"{n} sequences, but {n_packed} in packs"
    print(f"h5py reads kiln's files: {n} sequences, in {n_packs} packs ({metadata['packing_efficiency']:.3f} full)")
    for form, wanted in (("padded", PADDED), ("packed", PACKED)):
        source = f"{work}/{form}/training"
        model = train(kiln, work, source)
        for name, how in (("as_reference", {"compression": "gzip"}), ("plain", {}), ("wide", {"dtype": "i8"}),
                          ("big_endian", {"dtype": ">i4", "chunks": True, "shuffle": True})):
            target = f"{work}/{form}_{name}"
            rewrite(source, target, wanted, **how)
            assert filecmp.cmp(model, train(kiln, work, target), shallow=False), f"{form} {name} trains otherwise"
    print("kiln trains on h5py's files as on its own, byte for byte: padded and packed, 4 ways to write them")


if __name__ == "__main__":
    main()
