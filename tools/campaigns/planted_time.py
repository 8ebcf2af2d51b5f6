"""A switch that costs 2 % of time is found by `lab ablate`, and nothing where nothing is.

A try is an ablation over `seeds` seeds of a model of fifty layers with a switch for one more (model.layers=51). It must be found
at 0.01, by the corrected p-value and in the right direction. 19 of 20 are the target; a try that misses is a failure where more
than a twentieth have missed.

A/A: every ablation measures its base twice. Of all seeds of all tries as many are drawn as an ablation has, each once in
a draw, 500 times; each draw is tested as an arm is, by the two-way layout of base, control and arms. At most 2 % may be
called different at 0.01.

Needs a machine that does nothing else.

settings: tries=20, seeds=14, steps=120, draws=500
"""

import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from planted_jobs import ALPHA, Jobs, seed_of


def residual_variance(table):
    """table[arm][seed]: the mean square that neither explains, and its degrees of freedom."""
    arms, seeds = len(table), len(table[0])
    of_seed = [statistics.fmean(row[s] for row in table) for s in range(seeds)]
    overall = statistics.fmean(of_seed)
    squares = sum((row[s] - statistics.fmean(row) - of_seed[s] + overall) ** 2 for row in table for s in range(seeds))
    freedom = (arms - 1) * (seeds - 1)
    return squares / freedom, freedom


def t_tail(t, freedom):
    """P(|T| > t), Simpson's rule over the density by the angle atan(t / sqrt(freedom))."""
    angle, pieces = math.atan(abs(t) / math.sqrt(freedom)), 2000
    values = [math.cos(angle * i / pieces) ** (freedom - 1) for i in range(pieces + 1)]
    area = (values[0] + values[-1] + 4 * sum(values[1::2]) + 2 * sum(values[2:-1:2])) * angle / (3 * pieces)
    return 1 - 2 * area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def false_alarms(tables, seeds, draws, count):
    """Of `count` draws of seeds from all tables (base, control, arms, each arm's own mean taken out)."""
    columns = []  # of a seed each
    for table in tables:
        centred = [[value - statistics.fmean(row) for value in row] for row in table]
        # The control keeps its difference from the base: that is what is tested.
        control = table[1]
        columns += [[0.0, control[s], *(row[s] for row in centred[2:])] for s in range(len(control))]
    alarms = 0
    for _ in range(count):
        drawn = draws.sample(columns, seeds)
        # Which of the two is called the base is a toss: no arm differs from the other.
        table = [[] for _ in drawn[0]]
        for column in drawn:
            sign = draws.choice((1, -1))
            for arm, value in enumerate(column):
                table[arm].append(sign * value)
        variance, freedom = residual_variance(table)
        error = math.sqrt(2 * variance / seeds)
        alarms += error > 0 and t_tail(statistics.fmean(table[1]) / error, freedom) < ALPHA
    return alarms


def run(context):
    jobs = Jobs(context)
    tries, seeds = context.setting("tries", 20), context.setting("seeds", 14)
    steps, count = context.setting("steps", 120), context.setting("draws", 500)
    found, differences, tables, missed = 0, [], [], []
    for attempt in range(tries):
        report, arm = jobs.ablate(jobs.of.DEEP, "model.layers=51", steps, seed_of(attempt), seeds)
        time = arm["log_time"]
        hit = time["p_corrected"] < ALPHA and time["difference"] > 0
        found += hit
        differences.append(time["difference"])
        tables.append([[0.0] * seeds, report["control_log_time_by_seed"], arm["log_time_by_seed"]])
        if not hit:
            missed.append(f"try {attempt}: {time['difference']:+.4f}, p {time['p_corrected']:.4f}")
        context.progress(f"{attempt + 1}/{tries}: {time['difference']:+.4f} (p {time['p_corrected']:.4f})")
    alarms = false_alarms(tables, seeds, random.Random(context.seed), count)
    failures = []
    if found * 20 < tries * 19:
        failures += [f"2 % of time: found in {found} of {tries}", *missed]
    if alarms * 50 > count:
        failures.append(f"A/A: {alarms} of {count} are called different")
    return {"tries": tries, "failures": failures, "seeds": seeds, "found": found,
            "planted": round(statistics.fmean(differences), 4), "draws": count, "false_alarms": alarms}
