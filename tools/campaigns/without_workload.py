"""Deletes each folder of workloads/ in a copy of the repository, builds what is left and runs its tests.

Settings: folders=all or names divided by commas; tests=REGEX of ctest entries (all: every one; none: it is only built);
jobs=2. A copy is made in build/without_<name>, from the files that git knows, configured by the preset `release`, so that
ccache has most of its objects, and removed when it has passed. Of each folder the result says what was built (command,
tests and benchmarks), how many tests ran, and which of them failed or were skipped. The fast version, which builds
nothing, is tests/tools/test_workloads.py."""

import json
import pathlib
import re
import shutil
import subprocess
import time


def copy_tree(root, target, name):
    names = subprocess.run(["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    for path in filter(None, names):
        source = root / path
        if path.startswith(f"workloads/{name}/") or not (source.is_symlink() or source.is_file()):
            continue
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
    # Tests ask git which files there are.
    for command in (["init", "-q", "-b", "main"], ["add", "-A"],
                    ["-c", "user.name=campaign", "-c", "user.email=campaign@example.org", "commit", "-q", "-m", "a copy"]):
        subprocess.run(["git", *command], cwd=target, check=True, capture_output=True)


def told(output):
    """What ctest says in the end: how many tests ran, and the names of those that failed or were skipped."""
    summary = re.search(r"^\d+% tests passed, \d+ tests? failed out of (\d+)$", output, re.M)
    listed = re.findall(r"^\s+\d+ - (\S+) \((.+)\)$", output, re.M)
    return {"tests": int(summary[1]) if summary else 0,
            "failed": sorted(name for name, how in listed if how != "Skipped"),
            "skipped": sorted(name for name, how in listed if how == "Skipped")}


class Tree:
    """A copy without a folder."""

    def __init__(self, context, name, jobs):
        self.context, self.name, self.jobs = context, name, jobs
        self.folder = pathlib.Path(context.root) / "build" / f"without_{name}"
        self.result = {"without": name}
        shutil.rmtree(self.folder, ignore_errors=True)
        copy_tree(context.root, self.folder, name)

    def run(self, *command):
        """Its output; what is printed last tells why it failed."""
        self.context.progress(f"without {self.name}: {' '.join(command)}")
        done = subprocess.run(["nice", *command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        return done.returncode, done.stdout

    def build(self):
        began = time.time()
        for command in (["cmake", "--preset", "release", "--log-level=NOTICE"],
                        ["cmake", "--build", "--preset", "release", "--parallel", str(self.jobs), "--target", "all", "benches"]):
            code, output = self.run(*command)
            if code != 0:
                self.result["built"] = False
                return f"without {self.name}: {' '.join(command)} ended with {code}: ...{output[-3000:]}"
        self.result |= {"built": True, "build_seconds": round(time.time() - began)}
        return ""

    def test(self, tests):
        began = time.time()
        code, output = self.run("ctest", "--preset", "release", "--output-on-failure", "--no-tests=error",
                                *([] if tests == "all" else ["-R", tests]))
        self.result |= told(output) | {"test_seconds": round(time.time() - began)}
        (self.folder / "ctest.log").write_text(output)
        return "" if code == 0 else f"without {self.name}: {', '.join(self.result['failed']) or output[-3000:]} failed"


def run(context):
    folders = context.setting("folders", "all")
    tests = context.setting("tests", "all")
    jobs = context.setting("jobs", 2)
    there = sorted(path.name for path in (context.root / "workloads").iterdir() if path.is_dir())
    names = there if folders == "all" else folders.split(",")
    results, failures = [], []
    for name in names:
        tree = Tree(context, name, jobs)
        failure = tree.build() or ("" if tests == "none" else tree.test(tests))
        results.append(tree.result)
        context.progress(json.dumps(tree.result))
        if failure:
            failures.append(failure)
        else:
            shutil.rmtree(tree.folder)
    return {"tries": len(names), "failures": failures, "folders": results, "tests": tests}
