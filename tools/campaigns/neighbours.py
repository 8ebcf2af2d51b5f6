"""Two workers beside other processes: a step takes at most 1.3 times as long as one worker's.

`fullbore bench CONFIG engine.threads=2 --vs engine.threads=1` beside 0, 1 and 2 processes that never rest, on a machine
that does nothing else. A configuration fails where, beside neighbours, two workers take more than `limit` times the
time of one worker in the same rounds.

settings: configs=FILE,FILE (such as need no data), rounds=15, limit=1.3, before=BINARY (of a build that is shown beside, and not judged)
"""

import json
import pathlib
import subprocess
import sys
import tempfile

BUSY = "while True: pass"
CONFIGS = "configs/gpt-launch-bound.yaml,configs/gpt-shakespeare-cpu.yaml"


def measure(context, binary, config, neighbours, rounds):
    """How many times as long two workers take as one, with its interval, and the losses of both."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(neighbours)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures = pathlib.Path(folder) / "figures.json"
            subprocess.run([str(binary), "bench", config, "engine.threads=2", "--vs", "engine.threads=1",
                            "--no-start", "--rounds", str(rounds), "--json", str(figures)],
                           cwd=context.root, check=True, capture_output=True, text=True)
            return figures_of(json.loads(figures.read_text()))
    finally:
        for process in busy:
            process.kill()
            process.wait()


def figures_of(measured):
    """The throughput of one worker over that of two is the time of two over that of one."""
    ratio = measured["throughput_ratio"]
    return {"two_over_one": round(ratio["median"], 3), "low": round(ratio["low"], 3), "high": round(ratio["high"], 3),
            "last_losses": [round(each["last_loss"], 4) for each in measured["contenders"]]}


def run(context):
    configs = context.setting("configs", CONFIGS).split(",")
    rounds = context.setting("rounds", 15)
    limit = context.setting("limit", 1.3)
    before = context.setting("before", "")
    tries, failures, rows = 0, [], []
    for config in configs:
        for neighbours in (0, 1, 2):
            context.progress(f"{config} beside {neighbours}")
            row = {"config": config, "neighbours": neighbours}
            row |= measure(context, context.root / context.build / "bin" / "fullbore", config, neighbours, rounds)
            if before:
                row["before"] = measure(context, before, config, neighbours, rounds)["two_over_one"]
            rows.append(row)
            if neighbours == 0:
                continue
            tries += 1
            if row["two_over_one"] > limit:
                failures.append(f"{config} beside {neighbours}: {row['two_over_one']} times one worker's time")
    return {"tries": tries, "failures": failures, "rows": rows}
