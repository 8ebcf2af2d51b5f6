#!/usr/bin/env python3
"""Runs the commands of docs/guide, and checks that every command, option and key of the documents exists.

usage: guide.py FULLBORE [PAGE...]

Of a page of docs/guide the ```sh blocks are run in their order, in an empty folder that has configs/, with FULLBORE on
the PATH. Each must end with 0. A ```text block behind one holds lines that it must print, in any order; `...` stands for
any text. ```console blocks are not run: they take minutes, a network or files of one's own. Their commands are held
against --help and `config` like all others, and so are keys, files and links within sentences. Comparisons with peers,
those of workloads/*/bench/peers/README.md too, are parsed by their scripts, and their jobs planned.

Where a folder of workloads/ is deleted (tools/support/gathered.py), a page that tells of what is not there is left out, with a note.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import shlex
import string
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "support"))
import gathered
SECTIONS = "run|data|model|loss|optim|train|engine|log|sensors|alarms"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
FILES = "(?:txt|h|cpp|md|json|yaml|csv)$"  # log.txt is a file


def documents():
    """Every page a user reads; CHANGELOG tells of keys that were."""
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md") if not gathered.leads_to_absent(path))]


def blocks(page):
    """(language, text, promised lines) of each fenced block; promised lines are those of a text block that follows."""
    found = []
    for match in FENCE.finditer(page):
        language, text = match[1], match[2]
        if language == "text" and found and found[-1][0] == "sh":
            found[-1][2].extend(line for line in text.splitlines() if line.strip())
        else:
            found.append((language, text, []))
    return found


def missing(promised, output):
    """The promised lines that no line of the output holds."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    absent = []
    for line in promised:
        pattern = ".*".join(re.escape(" ".join(part.split())) for part in line.split("..."))
        if not any(re.search(pattern, candidate) for candidate in lines):
            absent.append(line)
    return absent


def model_of(config):
    """The model that a configuration file names, or None."""
    named = re.search(r"^model:\n(?:  .*\n)*?  name: ([\w-]+)", (ROOT / config).read_text(encoding="utf-8"), re.M)
    return named[1] if named else None


class Command:
    """What the command says of itself: subcommands, options and keys."""

    def __init__(self, binary, environment=None):
        self.binary, self.environment, self.helps = str(binary), environment, {}
        self.keys = set(re.findall(rf"^((?:{SECTIONS})\.\w+)$", self.ask("config"), re.M))
        choices = re.search(r"^    one of (.*?)(?:, default .*)?$", self.ask("config", "model.name"), re.M)
        self.models = choices[1].split(", ") if choices else []

    def ask(self, *arguments):
        done = subprocess.run([self.binary, *arguments], capture_output=True, text=True, env=self.environment, check=False)
        return done.stdout if done.returncode == 0 else ""

    def help(self, words):
        if words not in self.helps:
            self.helps[words] = self.ask(*words, "--help")
        return self.helps[words]

    def subcommands(self, words):
        part = re.search(r"^Subcommands:\n(.*?)(?:\n\n|\Z)", self.help(words), re.S | re.M)
        return set(re.findall(r"^  ([\w-]+)", part[1], re.M)) if part else set()

    def complaints(self, line):
        """What is wrong with a command line that begins with fullbore."""
        words = shlex.split(line, comments=True)[1:]
        path, found = (), []
        while words and words[0] in self.subcommands(path):
            path += (words.pop(0),)
        if not path and words and not words[0].startswith("-"):
            return [f"there is no command `{words[0]}`"]
        text = self.help(path)
        for word in words:
            option = word.split("=")[0]
            if word.startswith("--") and not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text):
                found.append(f"`fullbore {' '.join(path)}` has no option {option}")
            if re.match(rf"(?:{SECTIONS})\.\w+=", word) and option not in self.keys:
                found.append(f"there is no key {option}")
            if word.startswith("configs/") and not (ROOT / word).exists():
                found.append(f"there is no {word}")
            elif word.startswith("configs/"):
                # A workload may train the model of another, which may not be there.
                model = model_of(word)
                if model and model not in self.models:
                    found.append(f"there is no model {model}, of {word}")
        return found


def expanded_lines(text):
    """The lines of a block, with what its variables were set to before in their place."""
    variables = {}
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda name: variables.get(name[1] or name[2], name[0]), line)
        assigned = re.fullmatch(r"\s*(\w+)=([\"'])(.*)\2\s*", line)
        if assigned:
            variables[assigned[1]] = assigned[3]
        else:
            yield line


def command_lines(text):
    """Commands of a block that call fullbore, whichever way."""
    for line in expanded_lines(text):
        for part in re.split(r"&&|\|\||;|\|", line):
            part = re.sub(r"^\s*(?:\$ )?(?:if |! )?", "", part)
            if re.match(r"(?:\S*/)?fullbore(?:\s|$)", part) and "<(" not in part:
                yield part.split(" > ")[0].split(" 2>")[0]


def examine(path, command):
    """What a page says that is not so."""
    page = path.read_text(encoding="utf-8")
    found = []
    for language, text, _ in blocks(page):
        if language in ("sh", "console"):
            for line in command_lines(text):
                found += [f"{complaint}: {line.strip()}" for complaint in command.complaints(line)]
            # Of a file that a block writes.
            found += [f"there is no {config}: {line.strip()}" for line in text.splitlines()
                      for config in re.findall(r"^ *config: (configs/\S+)", line) if not (ROOT / config).exists()]
    prose = FENCE.sub("", page)
    for code in re.findall(r"`([^`\n]+)`", prose):
        key = re.match(rf"((?:{SECTIONS})\.(?!{FILES})[a-z]\w*)(?:=|$)", code)
        if key and key[1] not in command.keys:
            found.append(f"there is no key {key[1]}")
        if re.match(r"[\w-]+(?:/[\w.-]+)+\.(?:h|cpp|md|txt|json|yaml|py|svg)$", code) and not re.match("runs/|checkpoints/", code) \
                and not any((base / code).exists() for base in (ROOT, ROOT / "fullbore")):
            found.append(f"there is no file {code}")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if not re.match(r"\w+:", target) and not (path.parent / target).exists():
            found.append(f"the link {target} leads nowhere")
    return found


def comparisons(page):
    """(line, script, words) of each command of a page that calls a comparison with peers."""
    for line in page.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*(workloads/\w+/bench/peers/compare_\w+)(\s.*)?$", line)
        if match:
            yield line.strip(), match[1], shlex.split(match[2] or "", comments=True)


def examine_comparisons(page, binary, environment, text):
    """What of a page's comparisons could not begin: their options are read by the scripts themselves, and their jobs planned,
    with `text` for every text that is named."""
    peers = str(ROOT / "bench" / "peers")
    if peers not in sys.path:
        sys.path.insert(0, peers)
    import comparison
    found = []
    for line, script, words in comparisons(page):
        if not (ROOT / script).is_file():
            found.append(f"there is no {script}: {line}")
            continue
        loader = importlib.machinery.SourceFileLoader(pathlib.Path(script).name, str(ROOT / script))
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
        loader.exec_module(module)
        arguments, errors = sys.argv, io.StringIO()
        sys.argv = [script, *words, "--binary", binary]
        try:
            with contextlib.redirect_stderr(errors):
                job = comparison.arguments(module.JOB, module.__doc__).job
        except SystemExit:
            found.append(f"{errors.getvalue().strip().splitlines()[-1]}: {line}")
            continue
        finally:
            sys.argv = arguments
        job = [f"data.path={text}" if word.startswith("data.path=") else word for word in job]
        config = ROOT / job[0]
        if config.is_file() and re.search(r'^  path: [^\s#"]', config.read_text(encoding="utf-8"), re.M):
            job.insert(1, f"data.path={text}")  # what is named there need not be here; a word behind it counts more
        done = subprocess.run([binary, "plan", *job], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            found.append(f"{done.stderr.strip()}: {line}")
    return found


def run_page(path, environment, folder):
    """Runs the sh blocks of a page in `folder`; what went wrong."""
    (folder / "configs").symlink_to(ROOT / "configs")
    for language, text, promised in blocks(path.read_text(encoding="utf-8")):
        if language != "sh":
            continue
        done = subprocess.run(["bash", "-e", "-u", "-o", "pipefail", "-c", text], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return [f"ended with {done.returncode}:\n{text}--- and printed\n{done.stdout}"]
        absent = missing(promised, done.stdout)
        if absent:
            return ["promised, but not printed:\n" + "\n".join(absent) + f"\n--- by\n{text}--- which printed\n{done.stdout}"]
    return []


def main(arguments):
    binary = pathlib.Path(arguments[0]).resolve()
    pages = [pathlib.Path(page).absolute() for page in arguments[1:]]
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        for folder in ("cache", "state"):
            (home / folder).mkdir(mode=0o700)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FULLBORE_")}
        environment |= {"HOME": str(home), "FULLBORE_CACHE": str(home / "cache"), "XDG_STATE_HOME": str(home / "state"),
                        "PATH": f"{binary.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        failed = 0
        command = Command(binary, environment)
        if not command.keys:
            sys.exit(f"{binary} config lists no keys")
        text = home / "text.txt"
        text.write_text(string.printable * 1000, encoding="utf-8")
        absent = gathered.absent_workloads()
        for page in pages or [*documents(), *sorted(ROOT.glob("workloads/*/bench/peers/README.md"))]:
            found = examine(page, command)
            found += examine_comparisons(page.read_text(encoding="utf-8"), str(binary), environment, text)
            if found and absent:
                print(f"{page.relative_to(ROOT)} is left out, without {', '.join(absent)}: {found[0].splitlines()[0]}")
                continue
            if page.parent == ROOT / "docs" / "guide":
                (home / page.stem).mkdir()
                found += run_page(page, environment, home / page.stem)
            for complaint in found:
                print(f"{page.relative_to(ROOT)}: {complaint}")
            failed += len(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
