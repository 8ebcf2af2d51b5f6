"""No workload's name, key or header may be known outside its folder: then the folder can be deleted.

Whole deletions take a build each: tools/campaign without_workload."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What people call a workload, if it is not the name of its folder: no plain English word can be searched for.
OTHER_NAMES = {"language": ["gpt"], "long_context": ["longcontext"]}
PLAIN_WORDS = {"language"}
# Keys that are a workload's own, and names of sections that several have.
KEY = re.compile(r'FB_KEY\((?:(\w+), )?(\w+)\)|\{"(\w+\.\w+)",\s*\[\]\(Config')
MACRO = re.compile(r'#define FB_KEY\(member\) \\\s*"(\w+)\."')
# Folders of records and documents, and what compares with programs that are named after the models.
ANYWHERE = re.compile(r"^(configs|docs|experiments|bench/(peers|results)|shared)/|/corpus/|/older_run/|\.md$|^LICENSE$"
                      r"|^bench/training_step\.cpp$|^tools/campaigns/|^tools/make_results$"
                      r"|^tools/check_words$|^tests/tools/(durable_calls|guide|test_[a-z_]*)\.py$")


def files():
    names = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).is_file()]


def keys_of(folder):
    """"model.branch" and the others that its *_keys.cpp registers."""
    keys = set()
    for path in folder.glob("*_keys.cpp"):
        text = path.read_text(encoding="utf-8")
        section = MACRO.search(text)
        for of, member, whole in KEY.findall(text):
            if whole:
                keys.add(whole)
            elif of:
                keys.add(f"{of}.{member}")
            elif section and member != "member":
                keys.add(f"{section[1]}.{member}")
    return keys - {"section.member"}


def violations(root, names):
    found = []
    workloads = sorted(path.name for path in (root / "workloads").iterdir() if path.is_dir())
    for workload in workloads:
        words = OTHER_NAMES.get(workload, []) + ([] if workload in PLAIN_WORDS else [workload])
        keys = keys_of(root / "workloads" / workload)
        patterns = [re.compile(rf"workloads/{workload}/")]
        patterns += [re.compile(rf"(?<![\w-]){word}(?![\w-]|\.trace)") for word in words]
        patterns += [re.compile(rf"(?<![\w.]){re.escape(key)}(?![\w(]| = )") for key in sorted(keys)]
        for name in names:
            if name.startswith(f"workloads/{workload}/") or ANYWHERE.search(name) or "/configs/" in name:
                continue
            try:
                text = (root / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                line = re.sub(r"(configs|results|peers)/[\w.-]+", "", line)  # files that are gathered for users, and records
                if any(pattern.search(line) for pattern in patterns):
                    found.append(f"{name}:{number}: knows of workloads/{workload}: {line.strip()[:90]}")
    return found


class Workloads(unittest.TestCase):
    def test_no_name_or_key_occurs_outside_its_folder(self):
        self.assertEqual(violations(ROOT, files()), [])

    def test_keys_are_found_where_there_are_any(self):
        for folder in (ROOT / "workloads").iterdir():
            if any("ConfigField" in path.read_text(encoding="utf-8") for path in folder.glob("*.cpp")):
                self.assertTrue(keys_of(folder), folder)

    def test_links_of_configs_lead_into_folders(self):
        for path in (ROOT / "configs").iterdir():
            self.assertTrue(path.is_symlink(), path)
            self.assertEqual(path.readlink().parts[:2], ("..", "workloads"), path)

    def test_what_is_known_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            own = root / "workloads" / "fish"
            own.mkdir(parents=True)
            (own / "fish_keys.cpp").write_text('#define FB_KEY(member) \\\n  "model." #member, x\n{FB_KEY(fins), {}}\n'
                                               '{"train.water",\n [](Config& config) {}}\n')
            other = root / "a.cpp"
            for line, count in [("int selfish;", 0), ('"model.fins"', 1), ('"model.finsize"', 0), ("train.water=3", 1),
                                ('#include "workloads/fish/a.h"', 1), ("// a fish", 1), ("configs/fish.yaml", 0)]:
                other.write_text(line + "\n")
                self.assertEqual(len(violations(root, ["a.cpp", "workloads/fish/fish_keys.cpp"])), count, line)


if __name__ == "__main__":
    unittest.main()
