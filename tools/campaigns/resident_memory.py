"""Resident memory against engine.memory_budget: never above.

Jobs of all workloads, small ones and of 124 M parameters, with accumulation, recomputation, microbatches, bf16, one
thread and several, background saves, texts that a run ends with. For each, `plan --json` tells the plan's bytes and those
of the process beside it. The job is trained with exactly that budget (all as it would be without one), and then with
the smallest one that `plan` accepts, found by halving to 1 MiB: each with an empty kernel cache (code is generated), and
resumed for two steps with the filled one. The process's resident memory is watched: VmHWM of /proc/PID/status every
2 ms, so that what the command itself forgets (/proc/self/clear_refs) counts too, and what the kernel says of it at its
end. A job fails if it is ever above its budget, does not end with exit code 0, or is resumed in other shards. With half of
the budget's process bytes alone it must be refused with exit code 5. `generate` and `eval` of what was trained are watched
too: they keep to the budget of their run.

key=value arguments: jobs=N, the first N jobs only; steps=N, 4 by default; workers=N, jobs at a time, 1 by default.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered

MEBIBYTE = 1 << 20


def jobs_of_workloads():
    """Of workloads/*/tests/parts/resident_memory.py: name, configuration, settings, and whether it reads a text."""
    return [(name, part.CONFIG, settings, getattr(part, "READS_TEXT", True))
            for part in gathered.parts("resident_memory").values() for name, settings in part.JOBS]


def peak_resident(command, folder, environment):
    """Exit code, the largest resident bytes ever, and what went to standard error."""
    with open(folder / "stderr", "w+b") as errors:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
                                   stderr=errors)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        peak = 0
        while True:
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
            except OSError:
                found = None
            if found:
                peak = max(peak, int(found[1]) * 1024)
            ended, how, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(how)
        errors.seek(0)
        return process.returncode, max(peak, usage.ru_maxrss * 1024), errors.read().decode(errors="replace")


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


class Job:
    def __init__(self, context, binary, job, steps, folder):
        name, config, self.settings, self.reads_text = job
        self.binary, self.steps, self.folder = binary, steps, folder
        self.arguments = [str(context.root / config), *self.settings]
        if self.reads_text:
            self.arguments.append("data.path=" +
                                  ("lines.jsonl" if "data.batching=buckets" in self.settings else "text.txt"))
        self.environment = dict(os.environ, FULLBORE_CACHE=str(folder / "cache"))
        self.result = {"job": name, "settings": self.settings}

    def command(self, verb, *more):
        return [self.binary, verb, *self.arguments, *more]

    def plan(self, *more):
        """Of `plan --json`; None if it is refused with exit code 5."""
        done = subprocess.run(self.command("plan", "--json", *more), cwd=self.folder, env=self.environment,
                              capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        if done.returncode != 5:
            raise RuntimeError(f"plan {more}: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        return None

    def watch(self, what, budget, command):
        code, peak, errors = peak_resident(command, self.folder, self.environment)
        self.result[what + "_mib"] = round(peak / MEBIBYTE, 1)
        if code != 0:
            raise RuntimeError(f"{what}: exit code {code}: {errors.strip()[-400:]}")
        if peak > budget:
            raise RuntimeError(f"{what}: {peak} bytes resident, {budget} allowed")

    def shards(self):
        return re.search(r"\n  parallel_microbatches: (\d+)", (self.folder / "run" / "config.resolved.yaml").read_text())[1]

    def train(self, name, budget):
        for part in ("cache", "run"):
            shutil.rmtree(self.folder / part, ignore_errors=True)
        more = [f"engine.memory_budget={budget}", "train.eval_interval=2", "train.eval_batches=2", "run.dir=run"]
        self.watch(name, budget, self.command("train", *more, f"train.steps={self.steps}"))
        shards = self.shards()
        self.watch(name + "_resumed", budget,
                   self.command("train", *more, f"train.steps={self.steps + 2}", "--resume"))
        if self.shards() != shards:
            raise RuntimeError(f"{name}: {shards} shards, resumed in {self.shards()}")
        self.result[name + "_shards"] = int(shards)

    def run(self):
        plan = self.plan()
        if plan is None:
            raise RuntimeError("does not fit this machine")
        planned, process = plan["planned_peak_bytes"], plan["process_bytes"]
        # The budget of plans leaves a 64th of them to evaluation.
        budget = planned + process + planned // 63 + MEBIBYTE // 4
        self.result |= {"planned_mib": round(planned / MEBIBYTE, 1), "process_mib": round(process / MEBIBYTE, 1),
                        "budget_mib": round(budget / MEBIBYTE, 1)}
        self.train("peak", budget)
        low, high = process // 2, budget  # refused, accepted
        while high - low > MEBIBYTE:
            middle = (low + high) // 2
            if self.plan(f"engine.memory_budget={middle}"):
                high = middle
            else:
                low = middle
        self.result["least_budget_mib"] = round(high / MEBIBYTE, 1)
        self.train("least_peak", high)
        if self.reads_text:
            self.watch("generate", high, [self.binary, "generate", "run", "--characters", "20"])
            self.watch("eval", high, [self.binary, "eval", "run", "--batches", "2"])
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        code, _, errors = peak_resident(self.command("train", f"engine.memory_budget={process // 2}", "run.dir=run"),
                                        self.folder, self.environment)
        if code != 5 or "are allowed" not in errors:
            raise RuntimeError(f"half of the process's bytes: exit code {code}, not 5: {errors.strip()[-200:]}")


def run_job(*arguments):
    job = Job(*arguments)
    try:
        job.run()
    except RuntimeError as error:
        job.result["error"] = str(error)
    return job.result


def run(context):
    jobs = jobs_of_workloads()
    jobs = jobs[: context.setting("jobs", len(jobs))]
    steps = context.setting("steps", 4)
    workers = context.setting("workers", 1)
    binary = str(pathlib.Path(context.build).resolve() / "bin" / "fullbore")
    if not pathlib.Path(binary).is_file():
        raise context.skip(f"{binary} has not been built")

    def run_in_folder(job):
        with tempfile.TemporaryDirectory(prefix="fullbore_resident_") as name:
            folder = pathlib.Path(name)
            make_text(folder)
            result = run_job(context, binary, job, steps, folder)
        context.progress(json.dumps(result))
        return result

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(run_in_folder, jobs))
    return {"tries": len(results), "jobs": results,
            "failures": [f"{r['job']}: {r['error']}" for r in results if "error" in r]}
