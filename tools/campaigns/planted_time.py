"""A switch that costs 2 % of time is found by `lab ablate`, and nothing where nothing is.

A try is an ablation over `seeds` seeds of a model of fifty layers with a switch for one more (model.layers=51). It must be found
at 0.01, by the corrected p-value and in the right direction. 19 of 20 are the target; a try that misses is a failure where more
than a twentieth have missed.

A/A: every ablation measures its base twice. Of all seeds of all tries as many are drawn as an ablation has, each once in
a draw, 500 times; each draw is tested as an arm is, by the two-way layouts of base, control and arms, written here a second time
(and a report's p has to be what that gives). At most 2 % may be called different at 0.01.

Takes about 75 minutes, of a machine that does nothing else.

settings: tries=20, seeds=28, steps=120, draws=500
"""

import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from planted_jobs import ALPHA, Jobs, seed_of


def fitted(table):
    """table[arm][seed]: what an arm's mean and a seed's let expect there."""
    arms = [statistics.fmean(row) for row in table]
    seeds = [statistics.fmean(column) for column in zip(*table)]
    overall = statistics.fmean(arms)
    return [[arm + seed - overall for seed in seeds] for arm in arms]


def residuals(tables, kept):
    """Of tables, from what is fitted to others of their shape."""
    return [[[value - fit for value, fit in zip(*rows)] for rows in zip(table, fitted(of))]
            for table, of in zip(tables, kept)]


def m_estimates(tables):
    """Huber's, of two-way layouts together, as lab/ablation/effects.h says: the tables with residuals clipped at 1.5 standard
    deviations, and the variance and degrees of freedom of what is left."""
    freedom = sum((len(table) - 1) * (len(table[0]) - 1) for table in tables)
    count = sum(len(table) * len(table[0]) for table in tables)
    kept = tables
    for _ in range(100):
        rest = residuals(tables, kept)
        sizes = [abs(value) for table in rest for row in table for value in row]
        limit = 1.5 * 1.4826 * statistics.median(sizes) * math.sqrt(count / freedom)
        kept = [[[fit + max(-limit, min(limit, value)) for value, fit in zip(*rows)] for rows in zip(of, fitted(table))]
                for of, table in zip(rest, kept)]
    clipped = [max(-limit, min(limit, value)) for table in residuals(tables, kept) for row in table for value in row]
    within = sum(abs(value) < limit for value in clipped) / count
    factor = (1 + (count - freedom) / count * (1 - within) / within) / within
    return kept, factor ** 2 * sum(value ** 2 for value in clipped) / freedom, freedom


def p_of(tables, arm):
    """That an arm differs from the base, by two layouts of as many seeds."""
    kept, variance, freedom = m_estimates(tables)
    difference = statistics.fmean(statistics.fmean(table[arm]) - statistics.fmean(table[0]) for table in kept)
    error = math.sqrt(2 * variance / sum(len(table[0]) for table in tables))
    return t_tail(difference / error, freedom) if error > 0 else 1.0


def t_tail(t, freedom):
    """P(|T| > t), Simpson's rule over the density by the angle atan(t / sqrt(freedom))."""
    angle, pieces = math.atan(abs(t) / math.sqrt(freedom)), 2000
    values = [math.cos(angle * i / pieces) ** (freedom - 1) for i in range(pieces + 1)]
    area = (values[0] + values[-1] + 4 * sum(values[1::2]) + 2 * sum(values[2:-1:2])) * angle / (3 * pieces)
    return 1 - 2 * area * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)


def false_alarms(tables, seeds, draws, count):
    """Of `count` draws of seeds from all tables (base, control, arms, each arm's own mean taken out). Even and odd seeds have
    layouts of their own, as the arms are started in the opposite order there, and are half of a draw each."""
    columns = ([], [])  # of even and odd seeds: a seed's figures, by arm
    for table in tables:
        for first in (0, 1):
            rows = [row[first::2] for row in table]
            # The control keeps its mean: that is what is tested.
            means = [0.0, 0.0, *(statistics.fmean(row) for row in rows[2:])]
            columns[first].extend([value - mean for value, mean in zip(column, means)] for column in zip(*rows))
    return sum(p_of([list(zip(*draws.sample(each, seeds // 2))) for each in columns], 1) < ALPHA for _ in range(count))


def run(context):
    jobs = Jobs(context)
    tries, seeds = context.setting("tries", 20), context.setting("seeds", 28)
    steps, count = context.setting("steps", 120), context.setting("draws", 500)
    found, differences, tables, missed, failures = 0, [], [], [], []
    for attempt in range(tries):
        report, arm = jobs.ablate(jobs.of.DEEP, "model.layers=51", steps, seed_of(attempt), seeds)
        time = arm["log_time"]
        hit = time["p_corrected"] < ALPHA and time["difference"] > 0
        found += hit
        differences.append(time["difference"])
        tables.append([[0.0] * seeds, report["control_log_time_by_seed"], arm["log_time_by_seed"]])
        again = p_of([[row[first::2] for row in tables[-1]] for first in (0, 1)], 2)
        if abs(again - time["p"]) > 0.001 + 0.05 * time["p"]:
            failures.append(f"try {attempt}: p {again:.4f} here and {time['p']:.4f} in the report")
        if not hit:
            missed.append(f"try {attempt}: {time['difference']:+.4f}, p {time['p_corrected']:.4f}")
        context.progress(f"{attempt + 1}/{tries}: {time['difference']:+.4f} (p {time['p_corrected']:.4f})")
    alarms = false_alarms(tables, seeds, random.Random(context.seed), count)
    if found * 20 < tries * 19:
        failures += [f"2 % of time: found in {found} of {tries}", *missed]
    if alarms * 50 > count:
        failures.append(f"A/A: {alarms} of {count} are called different")
    return {"tries": tries, "failures": failures, "seeds": seeds, "found": found,
            "planted": round(statistics.fmean(differences), 4), "draws": count, "false_alarms": alarms}
