#!/usr/bin/env python3
"""Adds a workload to a copy of the repository and uses it: nothing but its own folder may have to be touched.

usage: add_workload.py BUILD_FOLDER

The workload is that of examples/spring, whose main() becomes a registrar. Its target is built in the copy; the command of
BUILD_FOLDER, which knows nothing of it, then loads it, has its keys and trains it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(message)


def copy_tree(target):
    """The tracked files, links as links."""
    names = run("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                cwd=ROOT).split("\0")
    for name in filter(None, names):
        source, copy = ROOT / name, target / name
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)


def write_workload(folder):
    """As CONTRIBUTING.md says: sources and a CMakeLists.txt of one line."""
    source = (ROOT / "examples/spring/spring.cpp").read_text(encoding="utf-8")
    begin = source.index("}  // namespace\n\nint main(")
    source = source[:begin] + ('const WorkloadRegistrar kSpring{\n    {.name = "spring", .keys = {.models = {"spring"}, '
                               '.fields = fields}, .open = open}};\n\n}  // namespace\n')
    folder.mkdir()
    (folder / "spring.cpp").write_text(source, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text("fb_workload()\n", encoding="utf-8")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fullbore_add_workload_") as folder:
        folder = pathlib.Path(folder)
        tree = folder / "tree"
        copy_tree(tree)
        write_workload(tree / "workloads" / "spring")
        run("cmake", "-S", tree, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFB_TESTS=OFF")
        run("cmake", "--build", folder / "build", "--target", "fullbore_spring")
        names = run("ninja", "-C", folder / "build", "-t", "query", "lib/libfullbore_workloads.so." + version(tree))
        check("fullbore_spring" in names, f"libfullbore_workloads.so does not hold it:\n{names}")
        run(tree / "tools" / "check_layers")

        objects = list((folder / "build").glob("workloads/spring/**/*.o"))
        check(len(objects) == 1, f"{objects}")
        library = folder / "spring.so"
        run("c++", "-shared", "-o", library, *objects, "-L", build / "lib", "-lfullbore", f"-Wl,-rpath,{build / 'lib'}")
        there = {"cwd": folder, "env": {**os.environ, "LD_PRELOAD": str(library), "FULLBORE_CACHE": str(folder / "cache")}}
        command = build / "bin" / "fullbore"
        (folder / "spring.yaml").write_text("model: {name: spring, channels: 8}\nspring: {damping: 0.2}\n"
                                            "train: {steps: 20, batch_size: 16}\n", encoding="utf-8")
        check("how fast the spring comes to rest" in run(command, "config", "spring.damping", **there), "its key")
        run(command, "train", "spring.yaml", "run.dir=run", **there)
        check("channels: 8" in (folder / "run/config.resolved.yaml").read_text(encoding="utf-8"), "its configuration")
        run(command, "train", "run", "--resume", "train.steps=30", **there)
    print("a workload is its own folder: 2 files, nothing else touched")


def version(tree):
    text = (tree / "CMakeLists.txt").read_text(encoding="utf-8")
    return text.split("VERSION ", 2)[2].split()[0]


main()
