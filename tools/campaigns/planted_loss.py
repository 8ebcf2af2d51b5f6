"""A switch that costs 0.02 nats is found by `lab ablate`.

A try is an ablation over `seeds` seeds of a small model with a switch that learns more slowly: model and data are the same. It
must be found at 0.01, by the paired t-test and in the right direction. 19 of 20 are the target; a try that misses is a failure
where more than a twentieth have missed.

settings: tries=20, seeds=16, steps=300, rate=0.00193 (the planted learning rate; 0.003 is the base's)
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from planted_jobs import ALPHA, Jobs, seed_of


def run(context):
    jobs = Jobs(context)
    tries, seeds = context.setting("tries", 20), context.setting("seeds", 16)
    steps, rate = context.setting("steps", 300), context.setting("rate", "0.00193")
    found, differences, missed = 0, [], []
    for attempt in range(tries):
        _, arm = jobs.ablate(jobs.of.SMALL, f"optim.learning_rate={rate}", steps, seed_of(attempt), seeds)
        loss = arm["metrics"][0]
        hit = loss["p_equal"] < ALPHA and loss["difference"] > 0
        found += hit
        differences.append(loss["difference"])
        if not hit:
            missed.append(f"try {attempt}: {loss['difference']:+.4f}, p {loss['p_equal']:.4f}")
        context.progress(f"{attempt + 1}/{tries}: {loss['difference']:+.4f} (p {loss['p_equal']:.4f})")
    failures = [f"0.02 nats: found in {found} of {tries}", *missed] if found * 20 < tries * 19 else []
    return {"tries": tries, "failures": failures, "seeds": seeds, "found": found,
            "planted_nats": round(statistics.fmean(differences), 4)}
