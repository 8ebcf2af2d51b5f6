"""Weights after 100 steps of each configuration: the same bits by two builds.

Trains every file in configs/ by both builds on a text that is made for it, large ones in smaller sizes
(tools/support/two_builds.py), and compares all that the last checkpoint keeps, tensor by tensor: weights, averages, moments,
counters. Each build reads the configurations of its own tree, for keys may have other names.

settings: old=BINARY, new=BINARY (that of --build), steps=100, configs=NAME,NAME (all), old_configs=FOLDER and
new_configs=FOLDER (of the binaries' trees)
"""

import hashlib
import json
import pathlib
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import two_builds


def tensors(path):
    """Type, shape and bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        found[name] = (entry["dtype"], entry["shape"], data[8 + size + begin : 8 + size + end])
    return found


def kept(run):
    """All tensors of a run's last checkpoint, by file and name."""
    found = {}
    for path in sorted((run / "checkpoints" / "last").glob("*.safetensors")):
        found |= {f"{path.stem}: {name}": tensor for name, tensor in tensors(path).items()}
    return found


def digest(state):
    total = hashlib.sha256()
    for name, (dtype, shape, data) in sorted(state.items()):
        total.update(f"{name} {dtype} {shape}\n".encode() + data)
    return total.hexdigest()


def trained(build, name, text, steps):
    run = build.folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    more = [f"train.steps={steps}", f"train.eval_interval={max(1, steps // 2)}", "train.eval_batches=2",
            "train.checkpoint_interval=0", "train.background_saves=false", "log.interval=50", f"run.dir={run}"]
    if name not in two_builds.NO_TEXT:
        more.append("train.sample_characters=0")
    build.run("train", *build.job(name, text), *more)
    state = kept(run)
    if not any(name.startswith("weights: ") for name in state):
        raise RuntimeError(f"{build.name}: {name} kept no weights")
    return state


def compare(old, new):
    """What differs, at most three tensors of it by name; empty where nothing does."""
    if old.keys() != new.keys():
        return f"other tensors: {', '.join(sorted(old.keys() ^ new.keys())[:3])}"
    differing = [name for name in old if old[name] != new[name]]
    if not differing:
        return ""
    return f"{len(differing)} of {len(old)} tensors differ: {', '.join(differing[:3])}"


def run(context):
    steps = context.setting("steps", 100)
    with tempfile.TemporaryDirectory(prefix="fullbore_same_bits_") as name:
        folder = pathlib.Path(name)
        old, new = two_builds.Build(context, "old", folder), two_builds.Build(context, "new", folder)
        text = folder / "text.txt"
        two_builds.write_text(text)
        results, failures = [], []
        for job in two_builds.configurations(context, old, new):
            result = {"configuration": job, "settings": two_builds.SMALLER.get(job, [])}
            try:
                states = [trained(build, job, text, steps) for build in (old, new)]
                result |= {"tensors": len(states[0]), "old": digest(states[0]), "new": digest(states[1])}
                difference = compare(*states)
            except RuntimeError as error:
                difference = str(error)
            if difference:
                failures.append(f"{job}: {difference}")
            context.progress(f"{job:24} {'the same bits' if not difference else difference}")
            results.append(result)
        return {"steps": steps, "versions": {"old": old.version(), "new": new.version()}, "tries": len(results),
                "configurations": results, "failures": failures}
