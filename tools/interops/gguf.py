"""GGUF files, by the Python package gguf: one of every type of value and tensor that it writes, and one that we write.

Needs gguf and numpy. With --keep it writes tests/ckpt/golden/gguf/: `every.gguf`, with all types of metadata and tensors in
F32, F16, BF16, Q8_0 and Q4_1, `expected.json`, what the package says of it, and the seeds of the fuzz target. It reads what
`test_ckpt` writes to the file that FULLBORE_GGUF names, and compares names, types, metadata and values. It trains a
small GPT-2, Llama and Qwen2 by the command, exports each as GGUF and in the Hugging Face layout, and compares their tensors
by the package's own table of names and llama.cpp's order of rows.
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


def write_llama(path):
    """The smallest model of the architecture, with a tokenizer of bytes and one merge: a seed of the fuzz target."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(2)
    writer.add_feed_forward_length(2)
    writer.add_context_length(4)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    shown = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    tokens = [chr(b) for b in shown] + [chr(256 + i) for i in range(256 - len(shown))] + ["th", "<|eot_id|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 257 + [3])
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(257)
    writer.add_add_bos_token(True)
    square = numpy.ones((2, 2), numpy.float32)
    writer.add_tensor("token_embd.weight", numpy.ones((258, 2), numpy.float16))
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{part}.weight", square)
    for part in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{part}.weight", square[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]],
                                   numpy.float32).reshape(t["shape"]) for name, t in header.items()}


def paired(rows, heads):
    """The order of rows that llama.cpp's converter makes of transformers' rotary halves."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def compare_models(build, root, scratch, differences):
    compared = 0
    models = {"gpt2": (gguf.MODEL_ARCH.GPT2, "default", ["model.activation=gelu_tanh", "model.bias=true"]),
              "llama": (gguf.MODEL_ARCH.LLAMA, "llama-shakespeare-cpu", []),
              "qwen2": (gguf.MODEL_ARCH.QWEN2, "llama-shakespeare-cpu", ["model.attention_bias=qkv"])}
    for family, (arch, config, settings) in models.items():
        if family != "gpt2":
            settings = [*settings, "model.key_value_heads=2", "model.mlp_width=128"]
        def command(*arguments):
            subprocess.run([build / "bin/fullbore", *arguments], cwd=scratch, check=True, capture_output=True)
        command("train", str(root / f"configs/{config}.yaml"), f"data.path={root / 'README.md'}", f"run.dir={family}",
                "train.steps=2", "model.layers=2", "model.width=64", "model.heads=4", "train.sample_characters=0", "model.context=64",
                "train.batch_size=2",
                f"data.tokenizer=bpe:{root / 'tests/data/golden/families/llama3.json'}", *settings)
        command("export", family, "-o", f"{family}-hf")
        theirs = safetensors(pathlib.Path(scratch) / f"{family}-hf/model.safetensors")
        names = gguf.get_tensor_name_map(arch, 2)
        for layout, kind in (("gguf", Q.F16), ("gguf-q8_0", Q.Q8_0)):
            command("export", family, "--format", layout, "-o", f"{family}-{layout}")
            reader = gguf.GGUFReader(str(pathlib.Path(scratch) / f"{family}-{layout}"))
            found = {t.name: t for t in reader.tensors}
            for name, values in theirs.items():
                if family == "gpt2" and values.ndim == 2 and ".h." in name:
                    values = values.T
                if family == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
                    values = paired(values, 4 if "q_proj" in name else 2)
                mapped = names.get_name(name, try_suffixes=(".weight", ".bias"))
                tensor = found.pop(mapped, None)
                compared += 1
                if tensor is None:
                    differences.append(f"{family} {layout}: {name} -> {mapped} is missing")
                    continue
                wanted = gguf.quants.dequantize(gguf.quants.quantize(numpy.ascontiguousarray(values), tensor.tensor_type),
                                                tensor.tensor_type)
                got = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
                if values.ndim == 2 and "position" not in mapped and tensor.tensor_type != kind:
                    differences.append(f"{family} {layout}: {mapped} is {tensor.tensor_type.name}")
                if not numpy.array_equal(wanted.reshape(values.shape), got):
                    differences.append(f"{family} {layout}: {mapped} has other values")
            differences += [f"{family} {layout}: {name} is of no tensor" for name in found]
            vocabulary = json.loads((root / "tests/data/golden/families/llama3.json").read_text())["model"]["vocab"]
            tokens = reader.get_field("tokenizer.ggml.tokens").contents()
            compared += 1
            if any(tokens[number] != text for text, number in vocabulary.items()):
                differences.append(f"{family} {layout}: the tokens differ")
    return compared


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
            write_llama(corpus / "llama.gguf")
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
        compared += compare_models(build, root, scratch, differences)
    return {"compared": compared, "differences": differences, "gguf": importlib.metadata.version("gguf")}
