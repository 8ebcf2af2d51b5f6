"""No workload's name or key may be known outside its folder: then the folder can be deleted.

Allowed are configs/ and docs/, which gather what folders have, the pages that tell of all (README.md, CHANGELOG.md), and
records (bench/results, experiments, what older programs stored). "language" is an English word too: there the names of the
folder and of its model count. Whole deletions take a build each: tools/campaign without_workload."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "support"))
sys.dont_write_bytecode = True
import gathered  # noqa: E402

# Values of model.name, by which people know a workload too.
MODEL = re.compile(r'model\.name = "(\w+)"|models = \{"(\w+)"\}')
PUBLISHED = re.compile(r"(?i)gpt-?2|llama")  # models, and a tokenizer, of the world's
PLAIN_WORDS = {"language"}
# Keys that are a workload's own, and names of sections that several have.
KEY = re.compile(r'FB_KEY\((?:(\w+), )?(\w+)\)|\{"(\w+\.\w+)",\s*\[\]\(Config')
MACRO = re.compile(r'#define FB_KEY\(member\) \\\s*"(\w+)\."')
ALLOWED = re.compile(r"^tests/tools/test_workloads\.py$|^(configs|docs|experiments|bench/results)/|^(README|CHANGELOG)\.md$|^LICENSE$|^tools/interops/|/corpus/|/older_run/")


def files():
    names = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).is_file()]


def keys_of(folder):
    """"model.width" and the others that its *_keys.cpp registers."""
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


def names_of(folder):
    """Of the folder, in one word too, and of its models; no plain English word can be searched for."""
    found = {folder.name, folder.name.replace("_", "")} - PLAIN_WORDS
    for path in folder.glob("*.cpp"):
        found |= {name for names in MODEL.findall(path.read_text(encoding="utf-8")) for name in names if name}
    return sorted(found)


def expression_of(word):
    """The word alone, or as a part of a name in any spelling: two_fish, TwoFish, FISH; not selfish."""
    capital = word.title().replace("_", "")
    return rf"(?<![A-Za-z]){word}(?![a-z])|(?<![A-Z]){capital}(?![a-z])|(?<![A-Za-z]){word.upper()}(?![A-Za-z])"


def patterns_of(folder):
    patterns = [rf"workloads/{folder.name}(?!\w)", rf"(?<!\w){folder.name}::", *map(expression_of, names_of(folder))]
    patterns += [rf"(?<![\w.]){re.escape(key)}(?![\w(]| = )" for key in sorted(keys_of(folder))]
    # Texts without any of these need no look at the expression, which is slow.
    plain = {spelling for name in [folder.name, *names_of(folder)] for spelling in (name, name.replace("_", ""))}
    plain |= keys_of(folder)
    return [word.lower() for word in sorted(plain)], re.compile("|".join(patterns))


def violations(root, names):
    found = []
    patterns = {path.name: patterns_of(path) for path in sorted((root / "workloads").iterdir()) if path.is_dir()}
    for name in names:
        own = re.match(r"workloads/(\w+)/(configs/)?", name)
        if ALLOWED.search(name) or (own and own[2]):  # the configurations are those that configs/ gathers
            continue
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        # Files that are gathered for users, and records, are named by all.
        text = PUBLISHED.sub("", re.sub(r"(configs|results)/[\w.-]+", "", text))
        lower = f"{name}\n{text}".lower()
        for workload, (plain, pattern) in patterns.items():
            if not any(word in lower for word in plain):
                continue
            if own and own[1] == workload:
                continue
            if pattern.search(PUBLISHED.sub("", name)):
                found.append(f"{name}: is named after workloads/{workload}")
            if pattern.search(text):
                found += [f"{name}:{number}: knows of workloads/{workload}: {line.strip()[:90]}"
                          for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
    return found


class Workloads(unittest.TestCase):
    def test_no_name_or_key_occurs_outside_its_folder(self):
        self.assertEqual(violations(ROOT, files()), [])

    def test_keys_are_found_where_there_are_any(self):
        for folder in (ROOT / "workloads").iterdir():
            if any("ConfigField" in path.read_text(encoding="utf-8") for path in folder.glob("*.cpp")):
                self.assertTrue(keys_of(folder), folder)

    def test_what_is_gathered_is_a_link_into_a_folder(self):
        for path in (ROOT / "configs").iterdir():
            self.assertIsNotNone(gathered.workload_of(path), path)
        for folder in (ROOT / "workloads").iterdir():
            if (folder / "configs").is_dir():
                guides = [path for path in (ROOT / "docs/guide").iterdir() if gathered.workload_of(path) == folder.name]
                self.assertEqual([path.resolve() for path in guides], [folder / "guide.md"])
                gathered_configs = {path.resolve() for path in (ROOT / "configs").iterdir()}
                self.assertLessEqual(set(folder.glob("configs/*.yaml")), gathered_configs)

    def test_only_links_of_deleted_folders_lead_nowhere(self):
        for path in [*(ROOT / "configs").iterdir(), *(ROOT / "docs/guide").iterdir()]:
            self.assertTrue(path.exists() or gathered.leads_to_absent(path), path)

    def test_what_is_known_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            own = root / "workloads" / "fish"
            own.mkdir(parents=True)
            (own / "fish_keys.cpp").write_text('#define FB_KEY(member) \\\n  "model." #member, x\n{FB_KEY(fins), {}}\n'
                                               '{"train.water",\n [](Config& config) {}}\n')
            (own / "fish.cpp").write_text('model.name = "trout";\n')
            other = root / "a.cpp"
            for line, count in [("int selfish, fishy;", 0), ('"model.fins"', 1), ('"model.finsize"', 0), ("train.water=3", 1),
                                ('#include "workloads/fish/a.h"', 1), ("// a fish", 1), ("configs/fish.yaml", 0),
                                ("FishKeys keys;", 1), ("fish_keys(config)", 1), ("bench/peers/fish.py", 1), ("FISH = 1", 1),
                                ('"name: trout"', 1)]:
                other.write_text(line + "\n")
                self.assertEqual(len(violations(root, ["a.cpp", "workloads/fish/fish_keys.cpp"])), count, line)
            other.write_text("\n")
            for name, count in [("README.md", 0), ("docs/a.md", 0), ("tools/a.py", 1), ("fullbore/nn/README.md", 1),
                                ("workloads/fish/a.py", 0), ("workloads/bird/a.py", 1), ("workloads/bird/configs/a.yaml", 0)]:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("fish\n")
                self.assertEqual(len(violations(root, [name])), count, name)
            (root / "tools/fish.py").write_text("\n")
            self.assertEqual(len(violations(root, ["tools/fish.py"])), 1)

    def test_what_was_deleted_is_known_by_its_links(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("configs", "docs/guide", "workloads/bird/configs"):
                (root / name).mkdir(parents=True)
            (root / "configs/a.yaml").symlink_to("../workloads/bird/configs/a.yaml")
            (root / "docs/guide/own.md").write_text("")
            self.assertEqual(gathered.absent_workloads(root), [])
            (root / "docs/guide/b.md").symlink_to("../../workloads/fish/guide.md")
            self.assertEqual(gathered.absent_workloads(root), ["fish"])
            self.assertTrue(gathered.leads_to_absent(root / "docs" / "a" / ".." / "guide" / "b.md", root))
            self.assertFalse(gathered.leads_to_absent(root / "configs/a.yaml", root))
            self.assertFalse(gathered.leads_to_absent(root / "docs/guide/own.md", root))


if __name__ == "__main__":
    unittest.main()
