"""Training steps of every workload on an NVIDIA card: the processor's losses, and how long a step takes.

Each workload names its steps in tests/parts/cuda_steps.py, and writes what they read that no configuration makes. `size=small` trains two steps of a model of a few thousand numbers
on both devices, in fp32: every loss of the card must be within `bound` of the processor's. `size=full` trains the ten
first steps of the real one in fp32 on both (`losses=false`: on neither), then measures it in bf16 on the card by
`fullbore bench`, and holds its time to what is asked.

settings: size=small, driver=LIBRARY (in place of the system's; `fake`: the tests' own, which executes PTX), device=cuda,
          only=NAME,NAME (of steps), bound=1e-5, losses=true, rounds=5, keep=FOLDER (of the runs)
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import gathered
import two_builds


def steps_of_workloads(size, only):
    found = []
    for folder, module in gathered.parts("cuda_steps").items():
        for step in module.STEPS:
            if size in step and (not only or step["name"] in only):
                found.append({"workload": folder, **step})
    return found


def command(context, environment, *words):
    done = subprocess.run([str(context.root / context.build / "bin" / "fullbore"), *map(str, words)], cwd=context.root,
                          env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def trained_losses(context, environment, step, settings, device, steps, folder):
    run = folder / f"{step['name']}-{device.replace(':', '-')}"
    command(context, environment, "train", f"configs/{step['config']}.yaml", *settings, f"train.steps={steps}",
            "train.eval_interval=1000000", "train.eval_batches=1", "log.interval=1", f"engine.device={device}", f"run.dir={run}")
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records if record["kind"] == "train"]


def farthest(found, expected):
    """The largest difference, as a share of the first loss."""
    if len(found) != len(expected) or not expected:
        return math.inf
    scale = max(abs(expected[0]), 1e-3)
    return max(abs(a - b) / scale if math.isfinite(a) and math.isfinite(b) else math.inf for a, b in zip(found, expected))


def run(context):
    size = context.setting("size", "small")
    driver = context.setting("driver", "")
    device = context.setting("device", "cuda")
    only = [name for name in context.setting("only", "").split(",") if name]
    bound = context.setting("bound", 1e-5)
    losses = context.setting("losses", "true") == "true"
    rounds = context.setting("rounds", 5)
    keep = context.setting("keep", "")
    environment = dict(os.environ)
    if driver == "fake":
        driver = str(context.root / context.build / "lib" / "libfullbore_fake_cuda.so")
    if driver:
        environment["FULLBORE_CUDA_DRIVER"] = driver
    steps = steps_of_workloads(size, only)
    if not steps:
        raise context.skip(f"no step is called {', '.join(only)}" if only else "no workload has a step")
    failures, rows = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        text = pathlib.Path(scratch) / "text.txt"
        two_builds.write_text(text)
        environment["FULLBORE_CACHE"] = str(pathlib.Path(scratch) / "cache")
        for step in steps:
            context.progress(f"{step['name']}, {size}")
            row = {"name": step["name"], "config": step["config"], "settings": step[size]}
            rows.append(row)
            try:
                files = {"{text}": text}
                for name, write in step.get("files", {}).items():  # that the workload writes itself
                    files[f"{{{name}}}"] = pathlib.Path(scratch) / name
                    write(files[f"{{{name}}}"])
                settings = step[size]
                for name, file in files.items():
                    settings = [word.replace(name, str(file)) for word in settings]
                if losses:
                    count = 2 if size == "small" else 10
                    full = [*settings, "engine.precision=fp32"]
                    row["losses_of_cpu"] = trained_losses(context, environment, step, full, "cpu", count, folder)
                    row["losses_of_card"] = trained_losses(context, environment, step, full, device, count, folder)
                    row["farthest"] = farthest(row["losses_of_card"], row["losses_of_cpu"])
                    if not row["farthest"] <= bound:
                        failures.append(f"{step['name']}: losses {row['losses_of_card']} beside {row['losses_of_cpu']}")
                if size == "full":
                    figures = pathlib.Path(scratch) / "figures.json"
                    command(context, environment, "bench", f"configs/{step['config']}.yaml", *settings, "engine.precision=bf16",
                            f"engine.device={device}", "--rounds", rounds, "--json", figures)
                    row["bench"] = json.loads(figures.read_text())
                    row["milliseconds"] = 1e3 * row["bench"]["contenders"][0]["seconds_per_step"]["median"]
                    row["asked_milliseconds"] = step["asked_milliseconds"]
                    if row["milliseconds"] > step["asked_milliseconds"]:
                        failures.append(f"{step['name']}: {row['milliseconds']:.1f} ms, {step['asked_milliseconds']} asked")
            except (OSError, RuntimeError) as error:
                failures.append(f"{step['name']}: {error}")
    return {"tries": len(steps), "failures": failures, "rows": rows}
