"""GGUF files, by the Python package gguf: one of every type of value and tensor that it writes, and one that we write.

Needs gguf and numpy. With --keep it writes tests/ckpt/golden/gguf/: `every.gguf`, with all types of metadata and tensors in
F32, F16, BF16, Q8_0 and Q4_1, `expected.json`, what the package says of it, and the seeds of the fuzz target. It reads what
`test_ckpt` writes to the file that FULLBORE_GGUF names, and compares names, types, metadata and values.
"""
import importlib.metadata
import json
import os
import pathlib
import subprocess
import tempfile

import gguf
import numpy

T = gguf.GGUFValueType
Q = gguf.GGMLQuantizationType


def write_every(path, tensors=True):
    writer = gguf.GGUFWriter(str(path), "llama")
    for kind, value in [(T.UINT8, 200), (T.INT8, -5), (T.UINT16, 40000), (T.INT16, -300), (T.UINT32, 4000000000),
                        (T.INT32, -70000), (T.FLOAT32, 0.5), (T.BOOL, True), (T.STRING, "caf\u00e9 \U0001f600"),
                        (T.UINT64, 1 << 40), (T.INT64, -(1 << 40)), (T.FLOAT64, 0.1)]:
        writer.add_key_value(f"test.{kind.name.lower()}", value, kind)
    writer.add_array("test.texts", ["a", "", "\u0120the"])
    writer.add_array("test.numbers", [1, -2, 3])
    writer.add_array("test.reals", [0.25, -1.5])
    writer.add_array("test.truths", [True, False])
    expected = {}
    if tensors:
        random = numpy.random.default_rng(5)
        for name, kind, shape in [("f32", Q.F32, (3, 5)), ("f16", Q.F16, (2, 3, 4)), ("bf16", Q.BF16, (7,)),
                                  ("q8_0", Q.Q8_0, (3, 64)), ("q4_1", Q.Q4_1, (2, 96))]:
            values = random.standard_normal(shape).astype(numpy.float32)
            stored = gguf.quants.quantize(values, kind)
            # The package takes extents in values for unquantised types, in bytes for the others.
            writer.add_tensor(f"blk.0.{name}", stored, raw_dtype=None if kind in (Q.F32, Q.F16) else kind)
            expected[f"blk.0.{name}"] = {"shape": shape, "type": kind.name,
                                         "values": gguf.quants.dequantize(stored, kind).reshape(-1).tolist()}
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def run(root, build, keep):
    folder = root / "tests/ckpt/golden/gguf"
    differences = []
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch) / "every.gguf"
        expected = write_every(made)
        if keep:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "every.gguf").write_bytes(made.read_bytes())
            (folder / "expected.json").write_text(json.dumps(expected) + "\n")
            corpus = root / "tests/fuzz/corpus/gguf"
            corpus.mkdir(parents=True, exist_ok=True)
            (corpus / "every.gguf").write_bytes(made.read_bytes())
            write_every(corpus / "metadata.gguf", tensors=False)
        elif json.loads((folder / "expected.json").read_text()) != json.loads(json.dumps(expected)):
            differences.append("expected.json is not what the package says")

        ours = pathlib.Path(scratch) / "ours.gguf"
        done = subprocess.run([build / "bin/test_ckpt", "--gtest_filter=Gguf.WhatIsWrittenIsRead"], capture_output=True,
                              text=True, env={**os.environ, "FULLBORE_GGUF": str(ours)})
        if done.returncode != 0:
            differences.append(done.stdout[-2000:])
            return {"compared": 0, "differences": differences}
        reader = gguf.GGUFReader(str(ours))
        values = numpy.float32(numpy.sin(numpy.arange(128) * 0.37, dtype=numpy.float64) * 3)
        compared = 0
        for tensor in reader.tensors:
            kind = Q[tensor.name.split(".")[0].upper()]
            shape = (2, 64)
            stored = gguf.quants.quantize(values.reshape(shape), kind)
            compared += 1
            if tensor.tensor_type != kind or list(tensor.shape) != [64, 2]:
                differences.append(f"{tensor.name}: {tensor.tensor_type.name} {tensor.shape}")
            elif tensor.data.tobytes() != stored.tobytes():
                differences.append(f"{tensor.name}: other bytes than the package's")
        if compared != 4:
            differences.append(f"{compared} tensors; 4 were expected")
        known = {"general.architecture": "gpt2", "test.whole": 7, "test.below": -7, "test.real": 0.5, "test.truth": True,
                 "test.wide": 1 << 40, "test.texts": ["a", "\u0120b"], "test.numbers": [1, -2]}
        for key, value in known.items():
            compared += 1
            field = reader.get_field(key)
            if field is None or field.contents() != value:
                differences.append(f"{key}: {field and field.contents()!r}; {value!r} was expected")
    return {"compared": compared, "differences": differences, "gguf": importlib.metadata.version("gguf")}
