"""What `lab tune` finds against the defaults at processor levels, and how far the planner's predictions are from what it measures.

The quick jobs of the workloads are tuned at each level. Then `bench` measures the defaults and what was taken again, in one process,
in turns. A failure is a tuned job that is slower there beyond its interval, bf16 that was taken and is, or a tuning
that does not end. The figures: speed claimed and found, what was taken, and of all candidates together the error of predicted step time
and of predicted memory (median and worst of |predicted / measured - 1|, rank correlation within each job).

settings: minutes=6 (of a tuning), levels=auto,avx2, jobs= (names, with commas; all by default), rounds=15 (of bench)
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered


def made_up_text(count=200000):
    """A text of a few words in an order that is always the same."""
    state, words = 1, []
    for _ in range(count // 6):
        state = state * 48271 % 2147483647
        words.append(("storm", "light", "water", "stone", "never", "again", "under")[state % 7])
    return " ".join(words)


def settings_of(taken):
    """Of a report's list: "key=value" each, passes together."""
    settings = [f"{each['key']}={each['value']}" for each in taken if each["key"]]
    passes = [each["switch"] for each in taken if not each["key"]]
    return settings + ([f"engine.disabled_passes=[{', '.join(passes)}]"] if passes else [])


def run(context):
    binary = pathlib.Path(context.build).resolve() / "bin" / "fullbore"
    if not binary.is_file():
        raise context.skip(f"{binary} is not built")
    minutes, rounds = context.setting("minutes", 6.0), context.setting("rounds", 15)
    levels = context.setting("levels", "auto,avx2").split(",")
    wanted = [name for name in context.setting("jobs", "").split(",") if name]
    jobs = {name: words for part in gathered.parts("tuned").values() for name, words in part.JOBS.items()
            if not wanted or name in wanted}
    if not jobs:
        raise context.skip("no workload has such a job")
    rows, failures, errors = [], [], {"step": [], "memory": []}

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.txt").write_text(made_up_text())
        (folder / "configs").symlink_to(context.root / "configs")

        def fullbore(words, level):
            environment = dict(os.environ)
            if level != "auto":
                environment["FULLBORE_PROCESSOR"] = level
            return subprocess.run([str(binary), *words], cwd=folder, env=environment, capture_output=True, text=True)

        for job, words in jobs.items():
            words = [word.format(text=folder / "text.txt") for word in words]
            for level in levels:
                label = f"{job}, {level}"
                done = fullbore(["lab", "tune", *words, "--minutes", str(minutes), "--again", "--out", f"{job}-{level}",
                                 "--json"], level)
                if done.returncode:
                    failures.append(f"{label}: tune ended with {done.returncode}: {done.stderr.strip()[-300:]}")
                    continue
                report = json.loads(done.stdout)
                row = {"job": job, "level": level, "machine": report["machine"],
                       "taken": [each["name"] for each in report["taken"]],
                       "candidates": len(report["candidates"]),
                       "verdicts": {each["name"]: each["verdict"] for each in report["candidates"]}}
                claimed = [trial for trial in report["confirmation"] if not trial["reason"]]
                if report["taken"] and claimed:
                    best = max(claimed, key=lambda trial: trial["speed"])
                    row["claimed"] = [best["speed"], best["speed_low"], best["speed_high"]]
                    beside = [word for each in settings_of(report["taken"]) for word in ("--vs", each)]
                    again = fullbore(["bench", *words, *beside, "--rounds", str(rounds), "--no-start", "--json", "-"], level)
                    if again.returncode:
                        failures.append(f"{label}: bench ended with {again.returncode}: {again.stderr.strip()[-300:]}")
                    else:
                        ratio = json.loads(again.stdout)["throughput_ratio"]
                        row["found"] = [ratio["median"], ratio["low"], ratio["high"]]
                        if ratio["high"] < 1:
                            failures.append(f"{label}: {', '.join(row['taken'])}: {ratio['median']:.3f} times the speed "
                                            f"({ratio['low']:.3f} to {ratio['high']:.3f})")
                for what in errors:
                    error = report[f"{what}_prediction_error"]
                    errors[what].append(error)
                    row[f"{what}_error"] = {key: error[key] for key in ("count", "median", "worst", "rank_correlation")}
                rows.append(row)
                context.progress(f"{label}: {row['taken'] or 'nothing'} taken, claimed {row.get('claimed')}, "
                                 f"found {row.get('found')}, step error {row['step_error']['median']:.2f}")
    result = {"tries": len(jobs) * len(levels), "failures": failures, "jobs": rows}
    for what, all_of in errors.items():
        known = [each for each in all_of if each["count"]]
        ranked = [each["rank_correlation"] for each in known if each["rank_correlation"] is not None]
        if known:
            result[f"{what}_prediction"] = {
                "median_error": round(statistics.median(each["median"] for each in known), 3),
                "worst_error": round(max(each["worst"] for each in known), 3),
                "rank_correlation": round(statistics.median(ranked), 3) if ranked else None}
    return result
