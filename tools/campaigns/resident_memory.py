"""Resident memory against engine.memory_budget: never above.

20 jobs: GPT, hybrid and peptide, small budgets and larger, with accumulation, recomputation, microbatches, bf16 and
background saves. For each, `plan --json` tells the plan's bytes and those of the process beside it. The job is then
trained with exactly that budget, first with an empty kernel cache (code is generated), then with a filled one, and the
process's resident memory is watched: VmHWM of /proc/PID/status every 2 ms, so that what the command itself forgets
(/proc/self/clear_refs) counts too. A job fails if it is ever above its budget, or does not end with exit code 0. With
half of the budget's process bytes alone it must be refused with exit code 5.

key=value arguments: jobs=N, the first N jobs only; steps=N, 4 by default.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

MEBIBYTE = 1 << 20

GPT = ["configs/default.yaml"]
HYBRID = ["configs/hybrid-p2.yaml"]
PEPTIDE = ["configs/peptide-cpu.yaml"]

# Name, configuration, settings.
JOBS = [
    ("gpt", GPT, []),
    ("gpt saves often", GPT, ["train.checkpoint_interval=1"]),
    ("gpt in the foreground", GPT, ["train.background_saves=false", "train.checkpoint_interval=1"]),
    ("gpt accumulates", GPT, ["engine.accumulate=4"]),
    ("gpt recomputes", GPT, ["engine.recompute=full"]),
    ("gpt in one microbatch", GPT, ["engine.shards=1"]),
    ("gpt in two microbatches", GPT, ["engine.shards=2"]),
    ("gpt bf16", GPT, ["engine.precision=bf16"]),
    ("gpt small", GPT, ["train.batch_size=1", "model.width=32", "model.layers=1", "model.context=16"]),
    ("gpt deep", GPT, ["model.layers=12", "train.batch_size=2"]),
    ("gpt wide", GPT, ["model.width=512", "model.layers=2", "train.batch_size=2"]),
    ("gpt with loaders", GPT, ["data.workers=4", "data.prefetch=16"]),
    ("gpt in buckets", GPT, ["data.batching=buckets"]),
    ("hybrid", HYBRID, ["train.batch_size=2"]),
    ("hybrid bf16", HYBRID, ["train.batch_size=2", "engine.precision=bf16"]),
    ("hybrid accumulates, recomputes", HYBRID,
     ["train.batch_size=4", "engine.accumulate=2", "engine.recompute=full"]),
    ("peptide", PEPTIDE, ["train.batch_size=8"]),
    ("peptide bf16", PEPTIDE, ["train.batch_size=8", "engine.precision=bf16"]),
    ("peptide accumulates", PEPTIDE, ["train.batch_size=8", "engine.accumulate=2"]),
    ("peptide saves in the foreground", PEPTIDE,
     ["train.batch_size=4", "train.background_saves=false", "engine.shards=1"]),
]


def peak_resident(command, folder, environment):
    """Exit code, the largest resident bytes ever, and what went to standard error."""
    with open(folder / "stderr", "w+b") as errors:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
                                   stderr=errors)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        peak = 0
        while process.poll() is None:
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
            except OSError:
                found = None
            if found:
                peak = max(peak, int(found[1]) * 1024)
            time.sleep(0.002)
        errors.seek(0)
        return process.returncode, peak, errors.read().decode(errors="replace")


def make_text(folder):
    lines = []
    state = 1
    words = "the sea is calm tonight and the tide full moon lies fair upon straits".split()
    while sum(map(len, lines)) < 200_000:
        line = []
        for _ in range(8):
            state = (state * 1103515245 + 12345) % (1 << 31)
            line.append(words[state // 65536 % len(words)])
        lines.append(" ".join(line) + "\n")
    (folder / "text.txt").write_text("".join(lines))
    (folder / "lines.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))


def run_job(context, binary, job, steps, folder):
    name, config, settings = job
    arguments = [str(context.root / config[0]), *settings]
    if config is not PEPTIDE:
        arguments.append("data.path=" + ("lines.jsonl" if "data.batching=buckets" in settings else "text.txt"))
    environment = dict(os.environ, FULLBORE_CACHE=str(folder / "cache"))

    def command(verb, *more):
        return [binary, verb, *arguments, *more]

    planned = subprocess.run(command("plan", "--json"), cwd=folder, env=environment, capture_output=True,
                             text=True)
    if planned.returncode != 0:
        return {"job": name, "error": planned.stderr.strip()}
    plan = json.loads(planned.stdout)
    budget = plan["planned_peak_bytes"] + plan["process_bytes"]
    # The budget of plans leaves a 64th of them to evaluation.
    budget += plan["planned_peak_bytes"] // 63 + MEBIBYTE // 4
    result = {"job": name, "settings": settings, "planned_mib": round(plan["planned_peak_bytes"] / MEBIBYTE, 1),
              "process_mib": round(plan["process_bytes"] / MEBIBYTE, 1),
              "budget_mib": round(budget / MEBIBYTE, 1)}
    for cache in ("empty", "filled"):
        if cache == "empty":
            shutil.rmtree(folder / "cache", ignore_errors=True)
        shutil.rmtree(folder / "run", ignore_errors=True)
        more = [f"engine.memory_budget={budget}", f"train.steps={steps}", "train.eval_interval=2",
                "train.eval_batches=2", "run.dir=run"]
        code, peak, errors = peak_resident(command("train", *more), folder, environment)
        result[cache + "_mib"] = round(peak / MEBIBYTE, 1)
        if code != 0:
            result["error"] = f"{cache} cache: exit code {code}: {errors.strip()[-400:]}"
        elif peak > budget:
            result["error"] = f"{cache} cache: {result[cache + '_mib']} MiB resident, {result['budget_mib']} allowed"
    shutil.rmtree(folder / "run", ignore_errors=True)
    code, _, errors = peak_resident(
        command("train", f"engine.memory_budget={plan['process_bytes'] // 2}", "run.dir=run"), folder, environment)
    if code != 5 or "are allowed" not in errors:
        result["error"] = f"half of the process's bytes: exit code {code}, not 5: {errors.strip()[-200:]}"
    return result


def run(context):
    jobs = JOBS[: context.setting("jobs", len(JOBS))]
    steps = context.setting("steps", 4)
    binary = str(pathlib.Path(context.build).resolve() / "bin" / "fullbore")
    if not pathlib.Path(binary).is_file():
        raise context.skip(f"{binary} has not been built")
    results = []
    with tempfile.TemporaryDirectory(prefix="fullbore_resident_") as name:
        folder = pathlib.Path(name)
        make_text(folder)
        for job in jobs:
            results.append(run_job(context, binary, job, steps, folder))
            context.progress(json.dumps(results[-1]))
    return {"tries": len(results), "jobs": results,
            "failures": [f"{r['job']}: {r['error']}" for r in results if "error" in r]}
