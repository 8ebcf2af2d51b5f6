"""tests/tools/guide.py must find a command, option, key, link or printed line that is not there, and run the rest."""

import os
import pathlib
import tempfile
import unittest

import guide

FULLBORE = """#!/bin/sh
case "$*" in
  --help) printf 'Subcommands:\\n  train   Trains\\n  data    Texts\\n\\n\\nExample:\\n  fullbore stats\\n' ;;
  "data --help") printf 'Subcommands:\\n  stats   Counts\\n' ;;
  "train --help") printf 'Options:\\n  --resume   Go on\\n' ;;
  "data stats --help") printf 'Options:\\n  --json   Print JSON\\n' ;;
  config) printf 'data.path\\n    a text\\ntrain.steps\\n    a number\\n' ;;
  "config model.name") printf 'model.name\\n    one of none, MODEL, default none\\n' ;;
  train*) echo "completed at step 20/20 after 12 ms" ;;
  *) exit 2 ;;
esac
"""


class Guide(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        binary = self.folder / "fullbore"
        self.config = next(f"configs/{path.name}" for path in sorted((guide.ROOT / "configs").iterdir()) if path.exists())
        self.model = guide.model_of(self.config)
        binary.write_text(FULLBORE.replace("MODEL", self.model))
        binary.chmod(0o755)
        self.command = guide.Command(binary)
        self.page = self.folder / "page.md"

    def examine(self, text):
        self.page.write_text(text)
        return guide.examine(self.page, self.command)

    def run_page(self, text):
        self.page.write_text(text)
        work = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        return guide.run_page(self.page, os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}, work)

    def test_what_is_there_passes(self):
        self.assertEqual(self.examine(
            "`train.steps=5` and `log.txt` in [this](page.md), [that](https://example.org)\n"
            f"```sh\nfullbore train {self.config} \\\n  train.steps=5 --resume && fullbore data stats x --json | cat\n```\n"
            f"```console\nbuild/release/bin/fullbore train {self.config}   # --no-option\n```\n"), [])

    def test_what_is_not_there_is_named(self):
        for text, complaint in [
                ("```sh\nfullbore fly x\n```\n", "no command `fly`"),
                ("```console\nfullbore stats x\n```\n", "no command `stats`"),
                ("```console\nfullbore train c \\\n  --fast\n```\n", "no option --fast"),
                ("```console\nfullbore train c --res\n```\n", "no option --res"),
                ("```console\nfullbore data stats x --resume\n```\n", "`fullbore data stats` has no option --resume"),
                ("```sh\ntrue && fullbore train c train.step=5\n```\n", "no key train.step"),
                ("```sh\nfullbore train configs/none.yaml\n```\n", "no configs/none.yaml"),
                ("```sh\nfew=\"train.step=5\"\ntrain='fullbore train c'\n$train ${few}\n```\n", "no key train.step"),
                ("```sh\nrun=\"fullbore train\"\nrun=\"$run configs/none.yaml\"\n$run $more\n```\n", "no configs/none.yaml"),
                ("```sh\ncat > a.yaml <<'END'\nsweep:\n  config: configs/none.yaml\nEND\n```\n", "no configs/none.yaml"),
                ("set `train.step=5`\n", "no key train.step"),
                ("set `data.paths`\n", "no key data.paths"),
                ("see `bench/results/2020-01-01-none.txt`\n", "no file bench/results/2020-01-01-none.txt"),
                ("see `ir/grap.h` and `ir/graph.h`\n", "no file ir/grap.h"),
                ("[there](nowhere.md)\n", "nowhere.md leads nowhere")]:
            with self.subTest(text):
                found = self.examine(text)
                self.assertEqual(len(found), 1, found)
                self.assertIn(complaint, found[0])

    def test_model_that_is_not_there_is_named(self):
        text = f"```sh\nfullbore train {self.config}\n```\n"
        self.assertEqual(self.examine(text), [])
        self.command.models.remove(self.model)
        self.assertEqual([complaint.split(",")[0] for complaint in self.examine(text)], [f"there is no model {self.model}"])

    def test_comparisons_with_peers_can_begin(self):
        script = str(next(guide.ROOT.glob("workloads/*/bench/peers/compare_*")).relative_to(guide.ROOT))
        text = (f"    {script} --rounds 2   # --none\n    {script} --rounded 2\n"
                f"    {script} configs/a.yaml --peers none,such\n    {script} configs/refused.yaml \\\n  --rounds 2\n")
        (self.folder / "fullbore").write_text("#!/bin/sh\ncase \"$*\" in *refused*) echo 'no such text' >&2; exit 2;; esac\n")
        found = guide.examine_comparisons(text, str(self.folder / "fullbore"), None, "t")
        self.assertEqual(len(found), 3, found)
        for complaint, part in zip(found, ("--rounded", "none", "no such text")):
            self.assertIn(part, complaint)

    def test_commands_run_and_must_keep_what_is_promised(self):
        good = "```sh\nfullbore train x > log; cat log\n```\n\n```text\ncompleted at   step 20/20 ... ms\n```\n"
        self.assertEqual(self.run_page(good + "```sh\ntest -e log\n```\n```console\nfalse\n```\n"), [])
        self.assertIn("promised", self.run_page(good.replace("20/20", "20/21"))[0])
        self.assertIn("promised", self.run_page(good.replace("...", "... s ..."))[0])
        self.assertIn("ended with 2", self.run_page("```sh\nfullbore fly | cat\ntrue\n```\n")[0])
        self.assertIn("ended with 1", self.run_page("```sh\nfalse\ntrue\n```\n")[0])


if __name__ == "__main__":
    unittest.main()
