"""What workloads say that they learn: each case is trained as its configuration says, then measured on held-out data.

Cases are those of workloads/*/tests/parts/learning.py: a configuration, settings, a time that training may take, commands
that make what it needs ("before", each a list of arguments, in which {root} is the repository's folder; their time is part of
training's with "counts_before"), what is asked of
`eval --json` (or of the part's COMMAND) about the last checkpoint, and about a run "beside" it, which is then judged with it (the best one was chosen by a part of what is held out), and what its
report must say. A case fails that is trained in more time, or whose report does not say it.

settings: only=TEXT (cases whose name holds it; those of the last record that are not tried stay in it), long=1 (cases that
take many minutes too), threads=1 (engine.threads), steps=N (train.steps; 0, by default, as the
configuration has it), keep=FOLDER (of the runs; by default they are deleted)
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered


def run_command(command, folder):
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=dict(os.environ, FULLBORE_CACHE=str(folder / "cache")),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[1]}: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout, time.monotonic() - began


def run_case(context, binary, part, case, folder, threads, steps):
    result = {"case": case["name"], "commit": context.commit(), "settings": case["settings"]}
    name = "".join(c if c.isalnum() else "-" for c in case["name"])
    settings = [*case["settings"], f"engine.threads={threads}", *([f"train.steps={steps}"] if steps else [])]
    try:
        seconds = [run_command([binary, *(word.replace("{root}", str(context.root)) for word in command),
                                f"engine.threads={threads}"], folder)[1] for command in case.get("before", [])]
        if seconds:
            result["before_seconds"] = round(sum(seconds), 1)
        _, seconds = run_command([binary, "train", str(context.root / case["config"]), f"run.dir={name}", *settings],
                                 folder)
        result["training_seconds"] = round(seconds, 1)
        command = getattr(part, "COMMAND", ["eval"])
        reports, seconds = [], 0.0
        for run in [name, *([case["beside"]] if "beside" in case else [])]:
            report, taken = run_command([binary, *command, f"{run}/checkpoints/last", *part.EVALUATION, "--json"], folder)
            reports.append(json.loads(report))
            seconds += taken
        result["evaluation_seconds"] = round(seconds, 1)
        figures, faults = part.judge(*reports, **({"case": case} if "beside" in case else {}))
        taken = result["training_seconds"] + (result.get("before_seconds", 0) if case.get("counts_before") else 0)
        if taken > case["most_seconds"]:
            faults.append(f"was trained for {taken:.1f} s, {case['most_seconds']} s are allowed")
        return result | figures | ({"faults": faults} if faults else {})
    except RuntimeError as error:
        return result | {"faults": [str(error)]}


def recorded(context, tried):
    """Cases of the last record that are not tried now, each with its commit."""
    path = context.root / "bench/results/campaigns/learning.json"
    if not path.is_file():
        return []
    record = json.loads(path.read_text())
    return [{"case": each["case"], "commit": record["commit"]} | each for each in record["cases"]
            if each["case"] not in tried]


def run(context):
    only, threads, steps = context.setting("only", ""), context.setting("threads", 1), context.setting("steps", 0)
    longest = context.setting("long", 0)
    keep = context.setting("keep", "")
    binary = str(pathlib.Path(context.build).resolve() / "bin" / "fullbore")
    if not pathlib.Path(binary).is_file():
        raise context.skip(f"{binary} has not been built")
    results = []
    with tempfile.TemporaryDirectory(prefix="fullbore_learning_") as name:
        folder = pathlib.Path(keep or name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for part in gathered.parts("learning").values():
            for case in part.CASES:
                if only in case["name"] and (longest or not case.get("long")):
                    results.append(run_case(context, binary, part, case, folder, threads, steps))
                    context.progress(json.dumps(results[-1]))
    if not results:
        raise context.skip(f"no case holds '{only}'")
    if only:
        results += recorded(context, {each["case"] for each in results})
    return {"tries": len(results), "threads": threads, "cases": results,
            "failures": [f"{each['case']}: {fault}" for each in results for fault in each.get("faults", [])]}
