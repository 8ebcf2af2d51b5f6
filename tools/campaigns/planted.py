"""Regressions that are planted in a job, found by `lab ablate`; and nothing found where nothing is.

A try is two ablations over `seeds` seeds. The first has a switch that costs 2 % of time: a layer more in a model of
fifty (model.layers=51). The second has one that costs about 0.02 nats: a lower learning rate, model and data the same.
Each must be found at 0.01: the time by the corrected p-value, the nats by the paired t-test, both in the right direction.
19 of 20 are the target; a try that misses is a failure where more than a twentieth have missed.

A/A: every ablation measures its base twice. Of all seeds of all tries as many are drawn as an ablation has, each once in
a draw, 500 times; each draw is tested as an arm is, by the two-way layout of base, control and arms. At most 2 % may be
called different at 0.01.

Needs a machine that does nothing else.

settings: tries=20, seeds=6, steps=120 (of the deep model), quality_steps=300, rate=0.00215 (the planted learning rate; 0.003 is
the base's), draws=500
"""

import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered

ALPHA = 0.01

def words(draws, count):
    """Text with something to learn: words of a small language, each of which has favourites to go before."""
    lexicon = ["".join(draws.choices("abcdefghijklmnop", k=draws.randint(2, 7))) for _ in range(120)]
    favourites = {word: draws.sample(lexicon, 4) for word in lexicon}
    text, word = [], lexicon[0]
    for _ in range(count):
        word = draws.choice(favourites[word]) if draws.random() < 0.8 else draws.choice(lexicon)
        text.append(word)
    return " ".join(text)


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
    binary = pathlib.Path(context.build).resolve() / "bin" / "fullbore"
    if not binary.is_file():
        raise context.skip(f"{binary} is not built")
    parts = gathered.parts("planted")
    if not parts:
        raise context.skip("no workload has jobs for it")
    jobs = next(iter(parts.values()))
    tries, seeds = context.setting("tries", 20), context.setting("seeds", 6)
    steps, quality_steps = context.setting("steps", 120), context.setting("quality_steps", 300)
    rate, count = context.setting("rate", "0.00215"), context.setting("draws", 500)
    draws = random.Random(context.seed)
    found_time, found_nats, tables, missed = [], [], [], []

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = folder / "text.txt"
        text.write_text(words(draws, 30000))

        def ablate(job, switch, steps, seed):
            (folder / "job.yaml").write_text(job.format(text=text, steps=steps, seed=seed))
            shutil.rmtree(folder / "lab", ignore_errors=True)
            done = subprocess.run(
                [str(binary), "lab", "ablate", "job.yaml", "--switch", switch, "--seeds", str(seeds), "--steps", str(steps),
                 "--minutes", "600", "--out", "lab", "--json"], cwd=folder, capture_output=True, text=True, check=True)
            return json.loads(done.stdout)

        def arm_of(report):
            return next(arm for arm in report["arms"] if arm["on"])

        for attempt in range(tries):
            seed = 1000 * (attempt + 1)
            report = ablate(jobs.DEEP, "model.layers=51", steps, seed)
            arm = arm_of(report)
            time = arm["log_time"]
            hit = time["p_corrected"] < ALPHA and time["difference"] > 0
            found_time.append(hit)
            tables.append([[0.0] * seeds, report["control_log_time_by_seed"], arm["log_time_by_seed"]])
            if not hit:
                missed.append(f"try {attempt}: 2 % of time: {time['difference']:+.4f}, p {time['p_corrected']:.4f}")
            loss = arm_of(ablate(jobs.SMALL, f"optim.learning_rate={rate}", quality_steps, seed))["metrics"][0]
            hit = loss["p_equal"] < ALPHA and loss["difference"] > 0
            found_nats.append((hit, loss["difference"]))
            if not hit:
                missed.append(f"try {attempt}: nats: {loss['difference']:+.4f}, p {loss['p_equal']:.4f}")
            context.progress(f"{attempt + 1}/{tries}: time {time['difference']:+.4f} (p {time['p_corrected']:.4f}), "
                             f"nats {loss['difference']:+.4f} (p {loss['p_equal']:.4f})")
    alarms = false_alarms(tables, seeds, draws, count)
    failures = []
    for what, hits in (("2 % of time", sum(found_time)), ("0.02 nats", sum(hit for hit, _ in found_nats))):
        if hits * 20 < tries * 19:
            failures.append(f"{what}: found in {hits} of {tries}")
    if failures:
        failures += missed
    if alarms * 50 > count:
        failures.append(f"A/A: {alarms} of {count} are called different")
    return {"tries": 2 * tries, "failures": failures, "seeds": seeds, "found_time": sum(found_time),
            "found_nats": sum(hit for hit, _ in found_nats),
            "planted_nats": round(statistics.fmean(nats for _, nats in found_nats), 4),
            "draws": count, "false_alarms": alarms}
