"""Deletes each folder of workloads/ in a copy of the repository, builds what is left and runs its tests.

Settings: folders=all or names divided by commas; tests=REGEX of ctest entries (all: every one; none: it is only built);
jobs=2. A copy is made in build/without_<name>, from the files that git knows, and removed when it has passed. The fast
version, which builds nothing, is tests/tools/test_workloads.py."""

import pathlib
import shutil
import subprocess


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


def passes(context, tree, tests, jobs):
    """"" or what failed."""
    commands = [["cmake", "--preset", "release", "--log-level=NOTICE"],
                ["cmake", "--build", "--preset", "release", "--parallel", str(jobs)]]
    if tests != "none":
        commands.append(["ctest", "--preset", "release", "--output-on-failure", *([] if tests == "all" else ["-R", tests])])
    for command in commands:
        context.progress(" ".join(command))
        done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return f"{' '.join(command)} ended with {done.returncode}: ...{done.stdout[-3000:]}"
    return ""


def run(context):
    folders = context.setting("folders", "all")
    tests = context.setting("tests", "all")
    jobs = context.setting("jobs", 2)
    there = sorted(path.name for path in (context.root / "workloads").iterdir() if path.is_dir())
    names = there if folders == "all" else folders.split(",")
    failures = []
    for name in names:
        tree = pathlib.Path(context.root) / "build" / f"without_{name}"
        shutil.rmtree(tree, ignore_errors=True)
        context.progress(f"without workloads/{name}")
        copy_tree(context.root, tree, name)
        failure = passes(context, tree, tests, jobs)
        if failure:
            failures.append(f"without {name}: {failure}")
        else:
            shutil.rmtree(tree)
    return {"tries": len(names), "failures": failures, "without": names, "tests": tests}
