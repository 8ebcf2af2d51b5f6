"""Processor time of the tests that two builds have in common: after/before at most 1.01 in all.

A test goes by its suite and name, in whichever program of bin/test_* it is: rooms have moved and become several. Programs that
share tests run them at the processor's own level, one program at a time: the one build's, then the other's, in the next turn
the other way round. The first turn fills caches and is not counted. A test that fails or is skipped in one build is left out,
and listed. Of each pair of programs the least processor time of each side counts, of the program and of all that it starts.
The tests of a build are those of its own tree, and may have grown with it.

settings: old=FOLDER, new=FOLDER (builds; new is that of --build), turns=2 (behind the first), limit=1.01
"""

import json
import os
import pathlib
import subprocess
import tempfile


def names(program):
    """The tests of a program of GoogleTest, but for disabled ones."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, found = "", []
    for line in listed.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            found.append(suite + name)
        elif name.endswith("."):
            suite = name
    return [name for name in found if "DISABLED_" not in name]


def tests(build):
    """The program of each test: {name: path}. What several programs have is nobody's."""
    found, several = {}, set()
    for program in sorted((build / "bin").glob("test_*")):
        for name in names(program):
            if name in found:
                several.add(name)
            found[name] = program
    return {name: program for name, program in found.items() if name not in several}


class Side:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.folder.mkdir()
        self.environment = dict(os.environ, FULLBORE_CACHE=str(folder / "cache"), TEST_TMPDIR=str(folder))

    def run(self, program, chosen):
        """Those of the chosen tests that passed, and the processor time of all in seconds."""
        flags, report = self.folder / "flags", self.folder / "report.json"
        flags.write_text(f"--gtest_filter={':'.join(chosen)}\n--gtest_output=json:{report}\n")
        report.unlink(missing_ok=True)
        with open(self.folder / "output", "wb") as output:
            child = subprocess.Popen([program, f"--gtest_flagfile={flags}"], cwd=self.build, env=self.environment,
                                     stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if not report.is_file():
            last = (self.folder / "output").read_text(errors="replace").strip()[-400:]
            raise RuntimeError(f"{program} ended with {child.returncode} before its report: {last}")
        passed = {f"{suite['name']}.{test['name']}" for suite in json.loads(report.read_text())["testsuites"]
                  for test in suite["testsuite"] if test["result"] == "COMPLETED" and not test.get("failures")}
        return passed, used.ru_utime + used.ru_stime


def table(groups):
    lines = [f"{'before':28}{'after':28}{'tests':>7}{'before, s':>11}{'after, s':>10}{'ratio':>8}"]
    for group in groups:
        lines.append(f"{group['old']:28}{group['new']:28}{group['tests']:>7}{group['old_seconds']:>11.2f}"
                     f"{group['new_seconds']:>10.2f}{group['new_seconds'] / group['old_seconds']:>8.3f}")
    return "\n".join(lines)


def run(context):
    turns, limit = context.setting("turns", 2), context.setting("limit", 1.01)
    builds = [pathlib.Path(context.setting(name, default)).resolve() for name, default in (("old", ""), ("new", str(context.build)))]
    if turns < 1:
        raise context.skip(f"turns={turns}: one is needed behind the first")
    for build in builds:
        if not list((build / "bin").glob("test_*")):
            raise context.skip(f"{build} has no bin/test_*")
    found = [tests(build) for build in builds]
    pairs = {}
    for name in found[0].keys() & found[1].keys():
        pairs.setdefault((found[0][name], found[1][name]), set()).add(name)
    left_out, groups = [], []
    with tempfile.TemporaryDirectory(prefix="fullbore_same_tests_") as folder:
        sides = [Side(build, pathlib.Path(folder) / name) for build, name in zip(builds, ("old", "new"))]
        for programs, shared in sorted(pairs.items()):
            passed = set.intersection(*(side.run(program, sorted(shared))[0] for side, program in zip(sides, programs)))
            left_out += sorted(shared - passed)
            if not passed:
                continue
            seconds = [[], []]
            for turn in range(turns):
                for i in (0, 1) if turn % 2 == 0 else (1, 0):
                    seconds[i].append(sides[i].run(programs[i], sorted(passed))[1])
            groups.append({"old": programs[0].name, "new": programs[1].name, "tests": len(passed),
                           "old_seconds": round(min(seconds[0]), 3), "new_seconds": round(min(seconds[1]), 3)})
            context.progress(table(groups[-1:]).splitlines()[1])
    if not groups:
        raise context.skip("the builds have no tests in common")
    total = {key: round(sum(group[key] for group in groups), 3) for key in ("tests", "old_seconds", "new_seconds")}
    ratio = total["new_seconds"] / total["old_seconds"]
    context.progress(table([*groups, {"old": "all", "new": "", **total}]))
    return {"tries": total["tests"], "listed": {"old": len(found[0]), "new": len(found[1])}, "ratio": round(ratio, 4), **total,
            "programs": groups, "left_out": left_out, "limit": limit,
            "failures": [f"the tests take {ratio:.3f} of the time"] if ratio > limit else []}
