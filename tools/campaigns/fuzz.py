"""Fuzzes every reader of files, within 256 MiB of memory and one second of processor time an input.

Builds the preset `fuzz` (clang, AddressSanitizer) where it is not built yet, and runs the targets of tests/fuzz one after
the other on copies of their corpora. Memory is what a target takes above what it takes for its corpus alone, for the
sanitizer's own is most of that; no allocation may be larger than 256 MiB either. An input that took longer than a second
by the clock is tried again alone, and fails if it takes a second of processor time.

With engine=mutations it runs the programs fuzz_sample_* of an ordinary build instead: the same targets and limits, without
coverage and without sanitizer, several times as fast.

settings: engine=libfuzzer (or mutations), executions=10000000 (of all targets together), seconds=0 (of all together at
          most; 0: as long as it takes), targets=all (or names, separated by commas), keep=FOLDER (for inputs that fail)
"""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time

MEMORY_MIB = 256
SECONDS = 1
MOST_FAILURES = 5  # of a target; then the next one has its turn


def environment():
    return {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=8:detect_leaks=1:abort_on_error=0"}


def build(context):
    folder = context.root / "build" / "fuzz"
    if shutil.which("clang++") is None:
        raise context.skip("there is no clang++")
    subprocess.run(["cmake", "--preset", "fuzz", "--log-level=NOTICE"], cwd=context.root, check=True)
    subprocess.run(["nice", "-n", "19", "cmake", "--build", str(folder), "--target", "fuzzers", "-j", "2"], check=True)
    return folder / "bin"


def statistic(output, name):
    found = re.findall(rf"stat::{name}:\s*(\d+)", output)
    return int(found[-1]) if found else 0


def processor_seconds(binary, path):
    """Of one input alone, above those of none."""
    times = []
    for arguments in (["-runs=0"], [str(path)]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([binary, "-timeout=60", *arguments], capture_output=True, env=environment())
        times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return times[1] - times[0]


class Target:
    def __init__(self, binary, corpus, work):
        self.binary = str(binary)
        self.name = binary.name.removeprefix("fuzz_")
        self.work = work / self.name
        self.work.mkdir()
        self.corpus = self.work / "corpus"
        shutil.copytree(corpus, self.corpus)
        self.executions = 0
        self.seconds = 0.0
        self.failures = []
        self.slow_by_the_clock = 0
        self.baseline_mib = statistic(self.run(["-runs=0"]), "peak_rss_mb")
        self.peak_mib = 0

    def run(self, arguments):
        done = subprocess.run([self.binary, "-print_final_stats=1", f"-artifact_prefix={self.work}/", *arguments,
                               str(self.corpus)], capture_output=True, env=environment())
        return done.stderr.decode("utf-8", "replace")

    def fuzz(self, executions, seconds, seed, keep):
        began = time.monotonic()
        while executions > 0 and len(self.failures) < MOST_FAILURES:
            left = seconds - (time.monotonic() - began) if seconds else 0
            if seconds and left < 1:
                break
            limits = [f"-runs={executions}", f"-timeout={SECONDS}", f"-seed={seed}", "-max_len=16384",
                      f"-rss_limit_mb={self.baseline_mib + MEMORY_MIB}", f"-malloc_limit_mb={MEMORY_MIB}"]
            if seconds:
                limits.append(f"-max_total_time={int(left)}")
            output = self.run(limits)
            done = statistic(output, "number_of_executed_units")
            self.peak_mib = max(self.peak_mib, statistic(output, "peak_rss_mb"))
            executions -= max(done, 1)
            self.executions += done
            self.judge(output, keep)
            seed += 1
        self.seconds += time.monotonic() - began

    def judge(self, output, keep):
        for path in sorted(self.work.glob("*-*")):
            if not path.is_file():
                continue
            kind = path.name.split("-")[0]
            slow = kind in ("timeout", "slow")
            if slow and processor_seconds(self.binary, path) < SECONDS:
                self.slow_by_the_clock += 1
            elif kind != "slow" or slow:
                summary = re.findall(r"(?:SUMMARY|ERROR): (.*)", output)
                self.failures.append(f"{self.name}: {path.name} ({path.stat().st_size} bytes): "
                                     f"{summary[-1] if summary else kind}")
                if keep:
                    shutil.copyfile(path, pathlib.Path(keep) / f"{self.name}-{path.name}")
            path.unlink()


class SampleTarget:
    """A program fuzz_sample_*, which has the limits in itself."""

    def __init__(self, binary, corpus, work):
        self.binary = str(binary)
        self.name = binary.name.removeprefix("fuzz_sample_")
        self.corpus = str(corpus)
        self.work = work / self.name
        self.work.mkdir()
        self.executions = 0
        self.seconds = 0.0
        self.failures = []
        self.slow_by_the_clock = 0
        self.baseline_mib = 0
        self.peak_mib = 0

    def fuzz(self, executions, seconds, seed, keep):
        if len(self.failures) >= MOST_FAILURES:
            return
        settings = {**os.environ, "FB_FUZZ_SECONDS": str(seconds), "FB_FUZZ_SEED": str(seed), "TMPDIR": str(self.work)}
        began = time.monotonic()
        done = subprocess.run([self.binary, self.corpus], env=settings, capture_output=True, text=True)
        self.seconds += time.monotonic() - began
        found = re.search(r"(\d+) inputs kept, (\d+) mutations, (\d+) KiB", done.stdout)
        if found:
            self.executions += int(found[1]) + int(found[2])
            self.peak_mib = max(self.peak_mib, int(found[3]) // 1024)
        if done.returncode == 0:
            return
        self.failures.append(f"{self.name}: seed {seed}: exit code {done.returncode}: {done.stdout}{done.stderr}"[:500])
        for path in self.work.glob("*.failed"):
            if keep:
                shutil.copyfile(path, pathlib.Path(keep) / f"{self.name}-{seed}")
            path.unlink()


def run(context):
    engine = context.setting("engine", "libfuzzer")
    executions = context.setting("executions", 10_000_000)
    seconds = context.setting("seconds", 0)
    names = context.setting("targets", "all")
    keep = context.setting("keep", "")
    corpora = context.root / "tests" / "fuzz" / "corpus"
    if engine == "libfuzzer":
        kind, prefix, folder = Target, "fuzz_", build(context)
    else:
        kind, prefix, folder = SampleTarget, "fuzz_sample_", context.build / "bin"
    binaries = {path.name.removeprefix(prefix): path for path in sorted(folder.glob(prefix + "*"))}
    if not binaries:
        raise context.skip(f"there is no {folder}/{prefix}*")
    if names != "all":
        binaries = {name: binaries[name] for name in names.split(",")}
    with tempfile.TemporaryDirectory(prefix="fullbore_fuzz_") as work:
        targets = [kind(path, corpora / name, pathlib.Path(work)) for name, path in binaries.items()]
        began = time.monotonic()
        round_number = 0
        # In rounds, so that slow targets leave some to the fast ones where time is limited.
        while sum(target.executions for target in targets) < executions:
            share = max(1000, min(100_000, executions // (4 * len(targets))))
            before = sum(target.executions for target in targets)
            for target in targets:
                left = seconds - (time.monotonic() - began) if seconds else 0
                if seconds and left < 1:
                    break
                limit = left / len(targets) if seconds else 60
                target.fuzz(share, max(2, min(60 if kind is Target else 10, limit)),
                            context.seed + round_number * 1000, keep)
            round_number += 1
            done = sum(target.executions for target in targets)
            context.progress(f"round {round_number}: {done} executions, "
                             f"{sum(len(target.failures) for target in targets)} failures, "
                             f"{time.monotonic() - began:.0f} s")
            if done == before or (seconds and time.monotonic() - began > seconds):
                break
    return {
        "tries": sum(target.executions for target in targets),
        "engine": engine,
        "memory_limit_mib": MEMORY_MIB,
        "seconds_an_input": SECONDS,
        "targets": {target.name: {"executions": target.executions, "seconds": round(target.seconds, 1),
                                  "memory_of_the_corpus_mib": target.baseline_mib,
                                  "peak_memory_mib": target.peak_mib,
                                  "slow_by_the_clock_alone": target.slow_by_the_clock} for target in targets},
        "failures": [failure for target in targets for failure in target.failures],
    }
