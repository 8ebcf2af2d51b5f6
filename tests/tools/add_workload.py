#!/usr/bin/env python3
"""Adds a workload to a copy of the repository and uses it: nothing but its own folder may have to be touched.

usage: add_workload.py BUILD_FOLDER

The workload is that of examples/spring, whose main() becomes a registrar. Its target is built in the copy; the command of
BUILD_FOLDER, which knows nothing of it, then loads it, has its keys and trains it.
"""

from exercise import ROOT, check, exercise, run


def write_workload(folder):
    """As CONTRIBUTING.md says: sources and a CMakeLists.txt of one line."""
    source = (ROOT / "examples/spring/spring.cpp").read_text(encoding="utf-8")
    begin = source.index("}  // namespace\n\nint main(")
    source = source[:begin] + ('const WorkloadRegistrar kSpring{\n    {.name = "spring", .keys = {.models = {"spring"}, '
                               '.fields = fields}, .open = open}};\n\n}  // namespace\n')
    folder.mkdir()
    (folder / "spring.cpp").write_text(source, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text("fb_workload()\n", encoding="utf-8")


def body(it):
    write_workload(it.tree / "workloads" / "spring")
    objects = it.objects("workloads/spring/CMakeFiles/fullbore_spring.dir/spring.cpp.o")
    names = run("ninja", "-C", it.folder / "build", "-t", "query", "lib/libfullbore_workloads.so." + version(it.tree))
    check("fullbore_spring" in names, f"libfullbore_workloads.so does not hold it:\n{names}")
    run(it.tree / "tools" / "check_layers")

    there = it.there(it.library("spring.so", objects))
    command = it.build / "bin" / "fullbore"
    (it.folder / "spring.yaml").write_text("model: {name: spring, channels: 8}\nspring: {damping: 0.2}\n"
                                           "train: {steps: 20, batch_size: 16}\n", encoding="utf-8")
    check("how fast the spring comes to rest" in run(command, "config", "spring.damping", **there), "its key")
    run(command, "train", "spring.yaml", "run.dir=run", **there)
    check("channels: 8" in (it.folder / "run/config.resolved.yaml").read_text(encoding="utf-8"), "its configuration")
    run(command, "train", "run", "--resume", "train.steps=30", **there)
    touched = it.touched()
    check(all(name.startswith("workloads/spring/") for name in touched), f"beside its folder: {touched}")
    return f"a workload is its own folder: {', '.join(touched)}"


def version(tree):
    text = (tree / "CMakeLists.txt").read_text(encoding="utf-8")
    return text.split("VERSION ", 2)[2].split()[0]


exercise(body)
