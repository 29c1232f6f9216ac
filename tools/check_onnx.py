#!/usr/bin/env python3
"""Compares what onnxruntime makes of an ONNX file with the logits that kiln computed.

usage: check_onnx.py MODEL.onnx LOGITS.safetensors
LOGITS.safetensors is the file of `kiln convert --format onnx --logits`.  Checks the file with onnx.checker, runs the tokens as
one padded batch and each sequence alone, and fails if an output differs by more than 1e-4 x max(1, its largest magnitude).
Needs onnx, onnxruntime, numpy, safetensors; used with onnx 1.23 and onnxruntime 1.32.
"""
import sys

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file


def outputs_of(session, ids, types, mask):
    names = [o.name for o in session.get_outputs()]
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return dict(zip(names, session.run(names, {k: v.astype(np.int64) for k, v in inputs.items()})))


def as_kiln(out, mask, kiln):
    """The outputs under kiln's names, without padding."""
    real = mask.astype(bool)
    if "start_logits" in out:
        return {"qa": np.stack([out["start_logits"], out["end_logits"]], -1)[real]}
    if "prediction_logits" in out:
        return {"mlm": out["prediction_logits"][real], "nsp": out["seq_relationship_logits"]}
    if "logits" in out:
        name = next(n for n in ("mlm", "texts", "words") if n in kiln)
        return {name: out["logits"] if name == "texts" else out["logits"][real]}
    return {"hidden": out["last_hidden_state"][real], "pooled": out["pooler_output"]}


def largest(wanted, got):
    assert wanted.shape == got.shape, f"{got.shape}, not {wanted.shape}"
    return float(np.abs(wanted.astype(np.float64) - got).max())


def main(model, logits):
    onnx.checker.check_model(model, full_check=True)
    kiln = load_file(logits)
    ids, types, lengths = kiln["ids"], kiln["types"], kiln["lengths"]
    mask = (np.arange(ids.shape[1])[None] < lengths[:, None]).astype(np.int64)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    batch = as_kiln(outputs_of(session, ids, types, mask), mask, kiln)
    alone = [as_kiln(outputs_of(session, *(a[i : i + 1, :n] for a in (ids, types, mask))), mask[i : i + 1, :n], kiln)
             for i, n in enumerate(lengths)]
    failed = False
    for name, got in batch.items():
        scale = max(1.0, float(np.abs(kiln[name]).max()))
        together, apart = largest(kiln[name], got), largest(kiln[name], np.concatenate([a[name] for a in alone]))
        print(f"{model}: {name:6} max |difference| {together:.2g} in a batch, {apart:.2g} alone, max |output| {scale:.3g}")
        failed |= max(together, apart) > 1e-4 * scale
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)
