#!/usr/bin/env python3
"""Follows the first section of docs/guide/own-model.md to the letter: its files are written into an empty folder, its commands
typed there, with Fullbore installed where the page says. What it promises must be printed.

usage: own_model_guide.py BUILD_FOLDER
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import guide


def section(page, title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)^## ", page, re.S | re.M)[1]


def main():
    page = section((ROOT / "docs/guide/own-model.md").read_text(encoding="utf-8"), "From an empty folder")
    # A block is a file where the sentence before it ends or begins with the file's name.
    files = re.findall(r"`([\w.]+)`(?:, which [^\n]*)?:\n\n```(?:cmake|cpp)\n(.*?)^```$", page, re.S | re.M)
    commands = re.findall(r"^```console\n(.*?)^```$\n\n^```text\n(.*?)^```$", page, re.S | re.M)
    if sorted(name for name, _ in files) != ["CMakeLists.txt", "points.cpp"] or len(commands) != 1:
        sys.exit(f"the page has other files or commands: {[name for name, _ in files]}, {len(commands)} blocks of commands")
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        installed = subprocess.run(["cmake", "--install", sys.argv[1], "--prefix", home / ".local"], capture_output=True, text=True,
                                   check=False)
        if installed.returncode != 0:
            sys.exit(installed.stdout + installed.stderr)
        folder = home / "mine"
        folder.mkdir()
        for file, text in files:
            (folder / file).write_text(text, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FULLBORE_")}
        environment |= {"HOME": str(home), "FULLBORE_CACHE": str(home / "cache")}
        typed, promised = commands[0]
        done = subprocess.run(["bash", "-e", "-u", "-o", "pipefail", "-c", typed], cwd=folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        absent = guide.missing(promised.splitlines(), done.stdout)
        if done.returncode != 0 or absent:
            sys.exit(f"ended with {done.returncode}; promised, but not printed: {absent}\n{done.stdout}")


main()
