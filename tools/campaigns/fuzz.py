"""Fuzzes every reader of files, within 256 MiB of memory and one second of processor time an input.

Builds the preset `fuzz` (clang, AddressSanitizer) where it is not built yet, and runs the targets of tests/fuzz and workloads/*/tests/fuzz one after
the other on copies of their corpora. Memory is what a target takes above what it takes for its corpus alone, for the
sanitizer's own is most of that; no allocation may be larger than 256 MiB either.

With engine=mutations it runs the programs fuzz_sample_* of an ordinary build instead: the same targets and limits, without
coverage and without sanitizer, several times as fast.

settings: engine=libfuzzer (or mutations), executions=10000000 (of all targets together), least=0 (of each target),
          seconds=0 (of all together at most; 0: as long as it takes), targets=all (or names, separated by commas),
          more=no (yes: add to what is recorded, whichever engine made it), jobs=1 (targets at a time),
          programs=FOLDER (built already), corpora=FOLDER (inputs that reach new code stay there, a folder for each
          target), keep=build/fuzz_failures (for inputs that fail)
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

MEMORY_MIB = 256
SECONDS = 1  # of the processor: tests/fuzz/engine and tests/fuzz/sample hold every input to it
HANGS_SECONDS = 600  # by the clock: whoever waits for something takes no time of the processor
MOST_FAILURES = 5  # of a target; then the next one has its turn


def environment():
    # intercept_tls_get_addr: cmake/sanitizer_options.cmake says why.
    options = "quarantine_size_mb=8:malloc_context_size=8:detect_leaks=1:abort_on_error=0:intercept_tls_get_addr=0"
    return {**os.environ, "ASAN_OPTIONS": options}


def build(context):
    folder = context.root / "build" / "fuzz"
    if shutil.which("clang++") is None:
        raise context.skip("there is no clang++, whose libFuzzer this needs: on Debian, apt-get install clang")
    subprocess.run(["cmake", "--preset", "fuzz", "--log-level=NOTICE"], cwd=context.root, check=True)
    subprocess.run(["nice", "-n", "19", "cmake", "--build", str(folder), "--target", "fuzzers", "-j", "2"], check=True)
    return folder / "bin"


def statistic(output, name):
    found = re.findall(rf"stat::{name}:\s*(\d+)", output)
    return int(found[-1]) if found else 0


class Target:
    """A program fuzz_* of the preset `fuzz`."""

    prefix = "fuzz_"
    longest_turn = 60  # seconds

    def __init__(self, binary, corpus, work, found):
        self.binary = str(binary)
        self.name = binary.name.removeprefix(self.prefix)
        self.work = work / self.name
        self.work.mkdir()
        self.found = found / self.name if found else self.work / "found"
        self.found.mkdir(parents=True, exist_ok=True)
        self.corpus = corpus
        self.executions = 0
        self.seconds = 0.0
        self.failures = []
        self.baseline_mib = None
        self.peak_mib = 0

    def run(self, arguments):
        # What is found goes to the first folder.
        done = subprocess.run([self.binary, "-print_final_stats=1", f"-artifact_prefix={self.work}/", *arguments,
                               str(self.found), str(self.corpus)], capture_output=True, env=environment())
        return done.returncode, done.stderr.decode("utf-8", "replace")

    def fuzz(self, executions, seconds, seed, keep):
        began = time.monotonic()
        while executions > 0 and len(self.failures) < MOST_FAILURES:
            left = int(seconds - (time.monotonic() - began))
            if left < 1:
                break
            if self.baseline_mib is None:
                self.baseline_mib = statistic(self.run(["-runs=0"])[1], "peak_rss_mb")
            baseline = self.baseline_mib
            code, output = self.run([
                f"-runs={executions}", f"-max_total_time={left}", f"-timeout={HANGS_SECONDS}",
                f"-report_slow_units={HANGS_SECONDS}", f"-seed={seed}",
                "-max_len=16384", f"-rss_limit_mb={baseline + MEMORY_MIB}", f"-malloc_limit_mb={MEMORY_MIB}"])
            done = statistic(output, "number_of_executed_units")
            self.peak_mib = max(self.peak_mib, statistic(output, "peak_rss_mb") - baseline)
            self.executions += done
            executions -= max(done, 1)
            if code == 0:
                break
            self.judge(code, output, seed, keep)
            seed += 1
        self.seconds += time.monotonic() - began

    def judge(self, code, output, seed, keep):
        summary = (re.findall(r"(?:SUMMARY|ERROR): (.*)", output) or [output[-300:]])[-1]
        inputs = [path for path in sorted(self.work.glob("*-*")) if path.is_file()]
        for path in inputs:
            self.failures.append(f"{self.name}: {path.name} ({path.stat().st_size} bytes): {summary}")
            shutil.move(path, keep / f"{self.name}-{path.name}")
            (keep / f"{self.name}-{path.name}.txt").write_text(output[-20000:])
        if not inputs:
            self.failures.append(f"{self.name}: seed {seed}: exit code {code}: {summary}"[:500])


class SampleTarget(Target):
    """A program fuzz_sample_* of an ordinary build, which has the limits in itself."""

    prefix = "fuzz_sample_"
    longest_turn = 10

    def fuzz(self, executions, seconds, seed, keep):
        if len(self.failures) >= MOST_FAILURES:
            return
        settings = {**os.environ, "FB_FUZZ_SECONDS": str(seconds), "FB_FUZZ_SEED": str(seed), "TMPDIR": str(self.work)}
        began = time.monotonic()
        done = subprocess.run([self.binary, str(self.corpus)], env=settings, capture_output=True)
        self.seconds += time.monotonic() - began
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        found = re.search(r"(\d+) inputs kept, (\d+) mutations, (\d+) KiB", output)
        if found:
            self.executions += int(found[1]) + int(found[2])
            self.peak_mib = max(self.peak_mib, int(found[3]) // 1024)
        if done.returncode == 0:
            return
        self.failures.append(f"{self.name}: seed {seed}: exit code {done.returncode}: {output}"[:500])
        for path in self.work.glob("*.failed"):
            shutil.move(path, keep / f"{self.name}-{seed}")


def recorded(context):
    path = context.root / "bench" / "results" / "campaigns" / "fuzz.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def tried_again(old, binaries, keep):
    """The failures that are recorded, as those that still fail and those that do not: their inputs are kept."""
    still, mended = [], []
    for failure in old.get("failures", []):
        name, path = re.match(r"(\w+): (\S+)", failure).groups()
        kept = keep / f"{name}-{path}"
        passes = name in binaries and kept.is_file() and subprocess.run(
            [str(binaries[name]), str(kept)], capture_output=True, env=environment()).returncode == 0
        (mended if passes else still).append(failure)
    return still, mended


def in_rounds(context, targets, executions, least, seconds, jobs, keep, before):
    """Turns of limited length, so that slow targets leave some to the fast ones where time is limited."""
    began = time.monotonic()
    number = 0

    def so_far(target):
        return target.executions + before.get(target.name, 0)

    while True:
        lacking = [target for target in targets if so_far(target) < least]
        enough = sum(target.executions for target in targets) + sum(before.values()) >= executions
        # Who has least comes first: where time is short, the last get no turn.
        turns = sorted(lacking if enough else targets, key=so_far)
        left = seconds - (time.monotonic() - began) if seconds else float("inf")
        if not turns or left < 2 or all(len(target.failures) >= MOST_FAILURES for target in turns):
            return
        done = sum(target.executions for target in targets)

        def turn(target):
            rest = seconds - (time.monotonic() - began) if seconds else float("inf")
            if rest >= 2:
                length = max(2, min(target.longest_turn, left * jobs / len(turns), rest))
                target.fuzz(10_000_000, length, context.seed + number * 1000, keep)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(turn, turns))
        number += 1
        context.progress(f"round {number}: {sum(target.executions for target in targets)} executions, "
                         f"{sum(len(target.failures) for target in targets)} failures, "
                         f"{time.monotonic() - began:.0f} s")
        if sum(target.executions for target in targets) == done:
            return


def run(context):
    engine = context.setting("engine", "libfuzzer")
    executions = context.setting("executions", 10_000_000)
    least = context.setting("least", 0)
    seconds = context.setting("seconds", 0)
    names = context.setting("targets", "all")
    more = context.setting("more", "no") == "yes"
    jobs = context.setting("jobs", 1)
    programs = context.setting("programs", "")
    found = context.setting("corpora", "")
    keep = pathlib.Path(context.setting("keep", str(context.root / "build" / "fuzz_failures")))
    kind = Target if engine == "libfuzzer" else SampleTarget
    folder = pathlib.Path(programs) if programs else build(context) if kind is Target else context.build / "bin"
    binaries = {path.name.removeprefix(kind.prefix): path for path in sorted(folder.glob(kind.prefix + "*"))}
    corpora = {folder.name: folder for pattern in ("tests/fuzz/corpus/*", "workloads/*/tests/fuzz/corpus/*")
               for folder in sorted(context.root.glob(pattern)) if folder.is_dir()}
    binaries = {name: path for name, path in binaries.items() if name in corpora}
    if names != "all":
        binaries = {name: binaries[name] for name in names.split(",")}
    if not binaries:
        raise context.skip(f"there is no {folder}/{kind.prefix}*")
    keep.mkdir(parents=True, exist_ok=True)
    old = recorded(context) if more else {}
    table = old.get("targets", {})
    before = {name: sum(row["executions"].values()) for name, row in table.items()}
    with tempfile.TemporaryDirectory(prefix="fullbore_fuzz_") as work:
        targets = [kind(path, corpora[name], pathlib.Path(work), pathlib.Path(found) if found else None)
                   for name, path in binaries.items()]
        in_rounds(context, targets, executions, least, seconds, jobs, keep, before)
    for target in targets:
        row = table.setdefault(target.name, {"executions": {}, "seconds": {}, "peak_memory_mib": 0})
        row["executions"][engine] = row["executions"].get(engine, 0) + target.executions
        row["seconds"][engine] = round(row["seconds"].get(engine, 0) + target.seconds, 1)
        row["peak_memory_mib"] = max(row["peak_memory_mib"], target.peak_mib)
    failures = [failure for target in targets for failure in target.failures]
    still, mended = tried_again(old, binaries, keep)
    runs = old.get("runs", []) + [{
        "engine": engine, "seed": context.seed, "commit": context.commit(), "failures": len(failures),
        "executions": sum(target.executions for target in targets)}]
    return {
        "tries": sum(sum(row["executions"].values()) for row in table.values()),
        "tries_of_each_engine": {
            name: sum(row["executions"].get(name, 0) for row in table.values()) for name in ("libfuzzer", "mutations")},
        "memory_limit_mib": MEMORY_MIB,
        "seconds_an_input": SECONDS,
        "runs": runs,
        "targets": dict(sorted(table.items())),
        "mended": old.get("mended", []) + mended,
        "failures": still + failures,
    }
