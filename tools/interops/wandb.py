"""Curves of a run as Weights & Biases takes them from TensorBoard's event files, against the run's own metrics.jsonl.

Needs the Python packages wandb and tensorboard, and the built command. The program of docs/guide/exporting.md is run as it stands
there, without a network: what it left for `wandb sync` is read by the messages of wandb itself. Every number of a
training step or an evaluation must be there with its step, as the 32 bits of an event file hold it.
"""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import wandb
from wandb.proto import wandb_internal_pb2

BLOCK = 32768
HEADER = 7  # of the file, of each piece: checksum, length, kind
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def program(root):
    """The Python text of the guide."""
    page = (root / "docs/guide/exporting.md").read_text(encoding="utf-8")
    return page.split("```python\n")[1].split("```")[0]


def records(path):
    """The records of a .wandb file: pieces in blocks, as LevelDB's log has them."""
    data = path.read_bytes()
    at, kept = HEADER, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:  # the rest of a block that holds no header
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        piece = data[at + HEADER:at + HEADER + length]
        at += HEADER + length
        kept = piece if kind in (WHOLE, FIRST) else kept + piece
        if kind in (WHOLE, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(kept)
            yield record


def logged(folder):
    """(curve, step) -> value of all that was logged."""
    found = {}
    [path] = folder.glob("wandb/offline-run-*/*.wandb")
    for record in records(path):
        if record.WhichOneof("record_type") != "history":
            continue
        values = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for name, value in values.items():
            found[name, values.get("step")] = value
    return found


def expected(folder):
    """The same of metrics.jsonl, as TensorBoard's curves are called."""
    found = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] not in ("train", "evaluation"):
            continue
        for name, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and name != "step" and math.isfinite(value):
                found[f"{record['kind']}/{name}", record["step"]] = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def run(root, build, keep):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 2000)
        subprocess.run(
            [build / "bin/fullbore", "train", root / "configs/default.yaml", "data.path=text.txt", "model.layers=1",
             "model.width=32", "model.heads=2", "train.batch_size=4", "train.steps=60", "train.eval_interval=20",
             "train.eval_batches=1", "train.sample_characters=0", "log.interval=5", "log.tensorboard=true", "run.dir=gpt"],
            cwd=folder, check=True, capture_output=True)
        (folder / "send.py").write_text(program(root))
        environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": place}
        subprocess.run([sys.executable, "send.py", "gpt"], cwd=folder, check=True, capture_output=True, env=environment)
        found, wanted = logged(folder), expected(folder / "gpt")
    differences = [f"{place}: {value} in metrics.jsonl, {found.get(place)} there"
                   for place, value in wanted.items() if found.get(place) != value]
    return {"versions": {"wandb": wandb.__version__}, "compared": len(wanted), "differences": differences[:20]}
