"""Step time of each configuration by two builds, interleaved: after/before at most 1.01.

`fullbore bench` of the one build and of the other run on every file in configs/, large ones in smaller sizes
(tools/support/two_builds.py), both at once but by turns: the one is stopped (SIGSTOP) while the other goes on for a slice
of 0.15 seconds, or of four steps, so that both meet what else the machine does. A step in which a process was stopped shows
that in its length and is left out. Neighbouring slices give a pair of times, each its fastest step's, which what else the
machine does delays least; pairs that follow one another within 1.2 seconds are alike and give one ratio together. A visit to one
configuration is followed by the next one's, a turn of all of them by one with the builds in the other order, until the time is
over. Visits from the second turn on are the longer, the wider a configuration's ratios scatter. For each configuration: the geometric mean of its ratios, and
its upper bound by Student's t over the pairs' logarithms; from ten pairs on Huber's estimate of both, in which a pair beside
which the machine did something else counts no further than 1.5 deviations. All bounds hold at once with 95 % confidence
(Bonferroni). A configuration fails whose bound is above the limit: it is slower, or there were too few turns to tell. Needs a machine
that does nothing else.

settings: old=BINARY, new=BINARY (that of --build), seconds=900 (of turns, behind two runs of each that are not counted),
turns=N (at most that many), limit=1.01, visit=20 and slice=0.15 in seconds, configs=NAME,NAME (all), comparisons=N (bounds
that are to hold at once: at least as many as configurations), old_configs=FOLDER and new_configs=FOLDER (of the binaries' trees)
"""

import functools
import json
import math
import pathlib
import signal
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
SHORTEST, LONGEST = 0.4, 4  # a visit's length, in terms of the average one
ALIKE = 1.2  # seconds, within which ratios depend on one another: pairs of 0.3 seconds had correlations of 0.25 to 0.31


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
    if len(times) < FEWEST_PAIRS:
        return {"pairs": len(times), "fault": f"{len(times)} pairs, {FEWEST_PAIRS} are needed: give it more seconds"}
    ratios = [new / old for old, new in times]
    result = {"pairs": len(times), "old_ms": round(1e3 * statistics.median(old for old, _ in times), 4),
              "new_ms": round(1e3 * statistics.median(new for _, new in times), 4)}
    ratio, bound = mean_and_bound(ratios, comparisons)
    result |= {"ratio": round(ratio, 4), "upper_bound": round(bound, 4)}
    return result | ({"fault": f"the upper bound {bound:.4f} is above {limit}"} if bound > limit else {})


class Bench:
    """`fullbore bench` of one build on one configuration, each step a round."""

    def __init__(self, build, job, text):
        self.build = build
        self.arguments = ["bench", *build.job(job, text), "--warm-up", "3", "--no-start", "--json", "-", "--steps", "1", "--rounds"]
        build.run(*self.arguments, "3")  # fills the caches
        began = time.monotonic()
        steps = self.seconds(build.run(*self.arguments, "3"))
        self.step = statistics.median(steps)
        self.start = time.monotonic() - began - sum(steps)  # in seconds, up to the steps

    def begin(self, seconds):
        """A process that makes steps for about so long."""
        return self.build.start(*self.arguments, str(max(3, round(seconds / self.step))))

    @staticmethod
    def seconds(output):
        """Of each step."""
        return json.loads(output)["contenders"][0]["round_seconds"]


def slices(steps, pause):
    """What lies between pauses, in lists. A step in which the process was stopped for so many seconds and longer is left out, and
    so is what was before the first of them."""
    limit = statistics.median(steps) + 0.7 * pause
    found = [[]]
    for seconds in steps:
        if seconds > limit:
            found.append([])
        else:
            found[-1].append(seconds)
    return found[1:]


def combined(pairs, count):
    """Geometric means of each `count` neighbours; what is left over counts as one more where it is half of that."""
    groups = [pairs[i:i + count] for i in range(0, len(pairs), count)]
    return [tuple(map(statistics.geometric_mean, zip(*group))) for group in groups if 2 * len(group) >= count]


def visit(benches, seconds, length):
    """Pairs of seconds of the fastest step of two benches, in their order: of neighbouring slices of `length` seconds and more,
    combined."""
    length = max(length, 4 * max(bench.step for bench in benches))
    running = []
    try:
        for bench in benches:  # up to steps: of slices in which there are none nothing is known
            running.append(bench.begin(seconds / 2))
            time.sleep(1.5 * bench.start + length)
            running[-1].send_signal(signal.SIGSTOP)
        while all(process.poll() is None for process in running):
            for process in running:
                process.send_signal(signal.SIGCONT)
                time.sleep(length)
                process.send_signal(signal.SIGSTOP)
        for process in running:
            process.send_signal(signal.SIGCONT)
        steps = [bench.seconds(bench.build.output(process)) for bench, process in zip(benches, running)]
    finally:
        for process in running:
            process.kill()
            process.wait()
    parts = [slices(each, length) for each in steps]
    if abs(len(parts[0]) - len(parts[1])) > 1:
        return []  # a pause was missed, or something else was taken for one: slices of one number are no neighbours
    pairs = [tuple(map(min, pair)) for pair in zip(*parts) if all(len(part) >= 2 for part in pair)]
    return combined(pairs, max(1, round(ALIKE / (2 * length))))


def lengths(ratios, spent, seconds):
    """Of the next visit to each job, `seconds` on average, such that what is known of all becomes equally sharp; spent: seconds
    so far. It follows from how ratios scatter, not from their mean: bounds hold as if all visits had been settled beforehand."""
    def scatter(job):
        if len(ratios[job]) < FEWEST_PAIRS:
            return math.inf
        return mean_and_error([math.log(ratio) for ratio in ratios[job]])[1] ** 2 * spent[job]

    needs = {job: scatter(job) for job in ratios}
    average = statistics.fmean([need for need in needs.values() if need < math.inf] or [1])
    shares = {job: min(max(need / average if average > 0 else 1, SHORTEST), LONGEST) for job, need in needs.items()}
    return {job: seconds * share * len(shares) / sum(shares.values()) for job, share in shares.items()}


def table(results):
    lines = [f"{'configuration':24}{'pairs':>6}{'before, ms':>12}{'after, ms':>12}{'ratio':>8}{'bound':>8}"]
    for each in results:
        lines.append(f"{each['configuration']:24}{each['pairs']:>6}"
                     + (f"{each['old_ms']:>12.3f}{each['new_ms']:>12.3f}{each['ratio']:>8.4f}{each['upper_bound']:>8.4f}"
                        if "ratio" in each else "")
                     + (f"  {each['fault']}" if "fault" in each else ""))
    return "\n".join(lines)


def run(context):
    seconds, most_turns = context.setting("seconds", 900.0), context.setting("turns", 1000)
    limit, length, visited = context.setting("limit", 1.01), context.setting("slice", 0.15), context.setting("visit", 20.0)
    with tempfile.TemporaryDirectory(prefix="fullbore_same_speed_") as name:
        folder = pathlib.Path(name)
        old, new = two_builds.Build(context, "old", folder), two_builds.Build(context, "new", folder)
        text = folder / "text.txt"
        two_builds.write_text(text)
        jobs = two_builds.configurations(context, old, new)
        benches = {job: [Bench(build, job, text) for build in (old, new)] for job in jobs}
        times = {job: [] for job in jobs}
        spent, visits = dict.fromkeys(jobs, 0.0), dict.fromkeys(jobs, visited)
        began, turn = time.monotonic(), 0
        while turn < most_turns and (turn == 0 or time.monotonic() - began < seconds):
            order = slice(None, None, 1 if turn % 2 == 0 else -1)
            for job in jobs:
                pairs = visit(benches[job][order], visits[job], length)
                times[job] += [pair[order] for pair in pairs]
                spent[job] += visits[job]
                if not pairs:
                    context.progress(f"{job}: a visit without pairs of neighbouring slices")
            turn += 1
            visits = lengths({job: [after / before for before, after in times[job]] for job in jobs}, spent, visited)
            context.progress(f"turn {turn}, {time.monotonic() - began:.0f} s")
        results = [{"configuration": job, "settings": two_builds.SMALLER.get(job, []),
                    **verdict(times[job], max(len(jobs), context.setting("comparisons", len(jobs))), limit),
                    "ratios": [round(after / before, 4) for before, after in times[job]]} for job in jobs]
        context.progress(table(results))
        return {"versions": {"old": old.version(), "new": new.version()}, "limit": limit, "tries": len(results),
                "configurations": results,
                "failures": [f"{each['configuration']}: {each['fault']}" for each in results if "fault" in each]}
