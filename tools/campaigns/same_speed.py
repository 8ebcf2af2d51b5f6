"""Step time of each configuration by two builds, interleaved: after/before at most 1.01.

`fullbore bench` of the one build and of the other take turns, in the order old, new, new, old, on every file in
configs/, large ones in smaller sizes (tools/support/two_builds.py); then the next turn of all of them, until the time is over.
A pair of neighbours gives one ratio of median step times. For each configuration: the geometric mean of its ratios, and
its upper bound by Student's t over the pairs' logarithms; from ten pairs on Huber's estimate of both, in which a pair beside
which the machine did something else counts no further than 1.5 deviations. All bounds hold at once with 95 % confidence
(Bonferroni). A configuration fails whose bound is above the limit: it is slower, or there were too few turns to tell. Needs a machine
that does nothing else.

settings: old=BINARY, new=BINARY (that of --build), seconds=900 (of turns, behind one that is not counted), turns=N (at
most that many), limit=1.01, rounds=3 and steps=0 as bench has them, configs=NAME,NAME (all), old_configs=FOLDER and
new_configs=FOLDER (of the binaries' trees)
"""

import functools
import json
import math
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import two_builds

CONFIDENCE = 0.95
FEWEST_PAIRS = 3
FEWEST_CLIPPED = 10
CLIP = 1.5  # standard deviations


def t_probability(t, freedom):
    """Of a value of Student's t below t, t >= 0: Simpson's rule over the density, by the angle atan(t / sqrt(freedom))."""
    angle, pieces = math.atan(t / math.sqrt(freedom)), 2000
    values = [math.cos(angle * i / pieces) ** (freedom - 1) for i in range(pieces + 1)]
    area = (values[0] + values[-1] + 4 * sum(values[1::2]) + 2 * sum(values[2:-1:2])) * angle / (3 * pieces)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return 0.5 + scale * area


@functools.lru_cache
def t_quantile(probability, freedom):
    """For probabilities of 0.5 and more."""
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < probability else (low, middle)
    return high


def mean_and_error(values):
    """Of ten values and more Huber's M-estimate and its asymptotic standard error (Huber, Robust Statistics, 1981, 6.6)."""
    count, mean = len(values), statistics.mean(values)
    if count >= FEWEST_CLIPPED:
        mean = statistics.median(values)
        limit = CLIP * 1.4826 * statistics.median(abs(value - mean) for value in values)
        if limit > 0:
            for _ in range(100):
                mean += statistics.fmean(max(-limit, min(limit, value - mean)) for value in values)
            within = sum(abs(value - mean) < limit for value in values) / count
            squares = sum(min(limit, abs(value - mean)) ** 2 for value in values)
            factor = (1 + (1 - within) / (count * within)) / within
            return mean, factor * math.sqrt(squares / (count - 1) / count)
    return mean, statistics.stdev(values, mean) / math.sqrt(count)


def mean_and_bound(ratios, comparisons):
    """The geometric mean and its upper bound, where as many comparisons are to hold at once."""
    mean, error = mean_and_error([math.log(ratio) for ratio in ratios])
    quantile = t_quantile(1 - (1 - CONFIDENCE) / comparisons, len(ratios) - 1)
    return math.exp(mean), math.exp(mean + quantile * error)


def verdict(times, comparisons, limit):
    """Of one configuration; times: (old, new) in seconds per step."""
    ratios = [new / old for old, new in times]
    result = {"pairs": len(times), "old_ms": round(1e3 * statistics.median(old for old, _ in times), 4),
              "new_ms": round(1e3 * statistics.median(new for _, new in times), 4)}
    if len(times) < FEWEST_PAIRS:
        return result | {"fault": f"{len(times)} pairs, {FEWEST_PAIRS} are needed: give it more seconds"}
    ratio, bound = mean_and_bound(ratios, comparisons)
    result |= {"ratio": round(ratio, 4), "upper_bound": round(bound, 4)}
    return result | ({"fault": f"the upper bound {bound:.4f} is above {limit}"} if bound > limit else {})


def step_seconds(build, job, text, rounds, steps):
    report = json.loads(build.run("bench", *build.job(job, text), "--rounds", str(rounds), "--steps", str(steps),
                                  "--warm-up", "3", "--no-start", "--json", "-"))
    return report["contenders"][0]["seconds_per_step"]["median"]


def table(results):
    lines = [f"{'configuration':24}{'pairs':>6}{'before, ms':>12}{'after, ms':>12}{'ratio':>8}{'bound':>8}"]
    for each in results:
        lines.append(f"{each['configuration']:24}{each['pairs']:>6}{each['old_ms']:>12.3f}{each['new_ms']:>12.3f}"
                     + (f"{each['ratio']:>8.4f}{each['upper_bound']:>8.4f}" if "ratio" in each else "")
                     + (f"  {each['fault']}" if "fault" in each else ""))
    return "\n".join(lines)


def run(context):
    seconds, most_turns = context.setting("seconds", 900.0), context.setting("turns", 1000)
    limit, rounds, steps = context.setting("limit", 1.01), context.setting("rounds", 3), context.setting("steps", 0)
    with tempfile.TemporaryDirectory(prefix="fullbore_same_speed_") as name:
        folder = pathlib.Path(name)
        old, new = two_builds.Build(context, "old", folder), two_builds.Build(context, "new", folder)
        text = folder / "text.txt"
        two_builds.write_text(text)
        jobs = two_builds.configurations(context, old, new)
        times = {job: [] for job in jobs}

        def pair(job, turn):
            order = (old, new) if turn % 2 == 0 else (new, old)
            found = {build.name: step_seconds(build, job, text, rounds, steps) for build in order}
            return found["old"], found["new"]

        for job in jobs:  # fills the caches
            pair(job, 0)
        began, turn = time.monotonic(), 0
        while turn < most_turns and (turn < FEWEST_PAIRS or time.monotonic() - began < seconds):
            for job in jobs:
                times[job].append(pair(job, turn))
            turn += 1
            context.progress(f"turn {turn}, {time.monotonic() - began:.0f} s")
        results = [{"configuration": job, "settings": two_builds.SMALLER.get(job, []),
                    **verdict(times[job], len(jobs), limit),
                    "ratios": [round(after / before, 4) for before, after in times[job]]} for job in jobs]
        context.progress(table(results))
        return {"versions": {"old": old.version(), "new": new.version()}, "limit": limit, "tries": len(results),
                "configurations": results,
                "failures": [f"{each['configuration']}: {each['fault']}" for each in results if "fault" in each]}
