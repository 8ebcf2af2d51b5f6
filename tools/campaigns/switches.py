"""What each switch of storage, learning rates, compile effort, norms and positions brings, and whether it is no worse.

`lab ablate` measures the switches of a job, alone and together, and `lab gate` decides about each by pairs of seeds. A failure is
a command that does not end, an arm that was not measured, or a switch that is worse where it must not be. The figures: speed of
each switch alone with its interval, least effect on time that was found, planned memory against the base's, and the verdict of the
gate with the difference in loss.

settings: minutes=4 (of an ablation), seeds=8 (pairs of a gate at most), jobs= (names, with commas; all by default)
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered
from planted_jobs import words as made_up_words

GATE_PASSED, GATE_FAILED, GATE_UNDECIDED = 0, 4, 7


class Commands:
    """Of a folder with a text and the configurations."""

    def __init__(self, context, folder):
        self.binary = pathlib.Path(context.build).resolve() / "bin" / "fullbore"
        if not self.binary.is_file():
            raise context.skip(f"{self.binary} is not built")
        self.folder = folder
        (folder / "text.txt").write_text(made_up_words(random.Random(context.seed), 60000))
        (folder / "configs").symlink_to(context.root / "configs")

    def run(self, words):
        """The exit code, the report and the end of what was said besides; no report where it is none."""
        done = subprocess.run([str(self.binary), *words, "--json"], cwd=self.folder, capture_output=True, text=True)
        try:
            report = json.loads(done.stdout)
        except json.JSONDecodeError:
            report = None
        return done.returncode, report, done.stderr.strip()[-300:]


def ablated(commands, name, job, switches, minutes, failures):
    code, report, said = commands.run(["lab", "ablate", *job, *(word for each in switches for word in ("--switch", each)),
                                       "--minutes", str(minutes), "--out", f"ablate-{name}"])
    if code or not report:
        failures.append(f"{name}: lab ablate ended with {code}: {said}")
        return None
    base, arms = report["arms"][0], {}
    for arm in report["arms"]:
        if "reason" in arm:
            failures.append(f"{name}: {arm['name']} was not measured: {arm['reason']}")
        elif "same_as" not in arm and (len(arm["on"]) == 1 or arm["name"] == "all"):
            time = arm["log_time"]
            arms[arm["name"]] = {"speed": [round(math.exp(-time[key]), 3) for key in ("difference", "high", "low")],
                                 "p": time["p_corrected"],
                                 "planned": round(arm["planned_bytes"] / base["planned_bytes"], 3)}
    return {"seeds": report["seeds"], "steps": report["steps"], "detectable": report["detectable"], "arms": arms}


def gated(commands, name, label, job, settings, seeds, must_be_no_worse, failures):
    code, report, said = commands.run(["lab", "gate", *job, *(word for each in settings for word in ("--with", each)),
                                       "--seeds", str(seeds), "--out", f"gate-{name}-{label}"])
    if code not in (GATE_PASSED, GATE_FAILED, GATE_UNDECIDED) or not report:
        failures.append(f"{name}: lab gate of {label} ended with {code}: {said}")
        return None
    if code == GATE_FAILED and must_be_no_worse:
        failures.append(f"{name}: {label} is worse")
    loss = next(each for each in report["metrics"] if each["metric"] == "loss")
    return {"verdict": report["verdict"], "pairs": loss["pairs"], "loss": [loss["a"], loss["b"]],
            "difference": [loss["difference"], loss["low"], loss["high"]]}


def run(context):
    minutes, seeds = context.setting("minutes", 4.0), context.setting("seeds", 8)
    wanted = [name for name in context.setting("jobs", "").split(",") if name]
    jobs = {name: job for part in gathered.parts("switches").values() for name, job in part.JOBS.items()
            if not wanted or name in wanted}
    if not jobs:
        raise context.skip("no workload has such a job")
    failures, rows, tries = [], {}, 0
    with tempfile.TemporaryDirectory() as name:
        commands = Commands(context, pathlib.Path(name))
        for name, job in jobs.items():
            text = commands.folder / "text.txt"
            settings = [word.format(text=text) for word in job["job"]]
            row = rows[name] = {"ablation": ablated(commands, name, settings, job["switches"], minutes, failures), "gates": {}}
            context.progress(f"{name}: {row['ablation'] and row['ablation']['arms']}")
            for label, (changed, must) in job["gates"].items():
                row["gates"][label] = gated(commands, name, label, settings, changed, seeds, must, failures)
                context.progress(f"{name}: {label}: {row['gates'][label] and row['gates'][label]['verdict']}")
            tries += 1 + len(job["gates"])
    return {"tries": tries, "failures": failures, "jobs": rows}
