"""What the campaigns planted_time and planted_loss share: jobs in which a regression is planted, and their ablations."""

import json
import pathlib
import random
import shutil
import subprocess
import tempfile

import gathered

ALPHA = 0.01


def words(draws, count):
    """Text with something to learn: words of a small language, each of which has favourites to go before."""
    lexicon = ["".join(draws.choices("abcdefghijklmnop", k=draws.randint(2, 7))) for _ in range(120)]
    favourites = {word: draws.sample(lexicon, 4) for word in lexicon}
    text, word = [], lexicon[0]
    for _ in range(count):
        word = draws.choice(favourites[word]) if draws.random() < 0.8 else draws.choice(lexicon)
        text.append(word)
    return " ".join(text)


class Jobs:
    """Of a folder of their own, on a text that is made for them."""

    def __init__(self, context):
        self.binary = pathlib.Path(context.build).resolve() / "bin" / "fullbore"
        if not self.binary.is_file():
            raise context.skip(f"{self.binary} is not built")
        parts = gathered.parts("planted")
        if not parts:
            raise context.skip("no workload has jobs for it")
        self.of = next(iter(parts.values()))
        self.kept = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.kept.name)
        (self.folder / "text.txt").write_text(words(random.Random(context.seed), 30000))

    def ablate(self, job, switch, steps, seed, seeds):
        """The report, and the arm that has the switch."""
        (self.folder / "job.yaml").write_text(job.format(text=self.folder / "text.txt", steps=steps, seed=seed))
        shutil.rmtree(self.folder / "lab", ignore_errors=True)
        done = subprocess.run(
            [str(self.binary), "lab", "ablate", "job.yaml", "--switch", switch, "--seeds", str(seeds), "--steps",
             str(steps), "--minutes", "600", "--out", "lab", "--json"],
            cwd=self.folder, capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)
        return report, next(arm for arm in report["arms"] if arm["on"])


def seed_of(attempt):
    return 1000 * (attempt + 1)
