"""The campaigns that compare two builds, on builds that are scripts: what differs is found, what does not is none."""

import json
import math
import pathlib
import random
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

campaign = tool.load("campaign")
same_bits = campaign.load("same_bits")
same_speed = campaign.load("same_speed")

# `train` keeps a weight that the file `weight` beside the script says, `bench` takes the time of the file `seconds`.
SCRIPT = """#!{python}
import json, os, pathlib, struct, sys
here = pathlib.Path(__file__).parent
if sys.argv[1] == "--version":
    print("fullbore of a test")
elif sys.argv[1] == "train":
    settings = dict(text.split("=", 1) for text in sys.argv[3:])
    assert (pathlib.Path(sys.argv[2])).is_file() and pathlib.Path(settings["data.path"]).is_file()
    folder = pathlib.Path(settings["run.dir"]) / "checkpoints" / "last"
    folder.mkdir(parents=True)
    name, value = (here / "weight").read_text().split()
    data = struct.pack("<f", float(value))
    header = json.dumps({{"__metadata__": {{"written": str(os.getpid())}},
                         name: {{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}}}).encode()
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
else:
    print(json.dumps({{"contenders": [{{"seconds_per_step": {{"median": float((here / "seconds").read_text())}}}}]}}))
"""


class TwoBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("old", "new"):
            self.build(name, "w 1", 0.5)

    def build(self, name, weight, seconds):
        tree = self.folder / name
        (tree / "configs").mkdir(parents=True, exist_ok=True)
        (tree / "configs" / "small.yaml").write_text("model:\n  name: mine\n")
        (tree / "build" / "release" / "bin").mkdir(parents=True, exist_ok=True)
        binary = tree / "build" / "release" / "bin" / "fullbore"
        binary.write_text(SCRIPT.format(python=sys.executable))
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        (binary.parent / "weight").write_text(weight)
        (binary.parent / "seconds").write_text(str(seconds))
        return binary

    def run_campaign(self, module, **settings):
        binaries = {name: str(self.folder / name / "build" / "release" / "bin" / "fullbore") for name in ("old", "new")}
        context = campaign.Context(1, self.folder, {**binaries, **settings})
        context.progress = lambda text: None
        result = module.run(context)
        self.assertEqual(context.settings, {}, "every setting is known")
        return result

    def test_same_bits(self):
        result = self.run_campaign(same_bits)
        self.assertEqual((result["failures"], result["tries"]), ([], 1))
        self.assertEqual(result["configurations"][0]["tensors"], 1)
        json.dumps(result)

    def test_other_bits(self):
        self.build("new", "w 1.0000001", 0.5)
        self.assertEqual(self.run_campaign(same_bits)["failures"], ["small: 1 of 1 tensors differ: weights: w"])
        self.build("new", "v 1", 0.5)
        self.assertEqual(self.run_campaign(same_bits)["failures"], ["small: other tensors: weights: v, weights: w"])

    def test_a_build_that_fails(self):
        (self.folder / "new" / "build" / "release" / "bin" / "weight").unlink()
        self.assertIn("new: train", self.run_campaign(same_bits)["failures"][0])

    def test_a_binary_that_is_missing(self):
        with self.assertRaises(campaign.Skip):
            self.run_campaign(same_bits, old="nowhere/fullbore")

    def test_speed(self):
        result = self.run_campaign(same_speed, turns="3")
        self.assertEqual(result["failures"], [])
        self.assertEqual(result["configurations"][0]["upper_bound"], 1.0)
        self.build("new", "w 1", 0.51)
        failures = self.run_campaign(same_speed, turns="3")["failures"]
        self.assertEqual(failures, ["small: the upper bound 1.0200 is above 1.01"])
        self.build("new", "w 1", 0.4)
        self.assertEqual(self.run_campaign(same_speed, turns="3")["failures"], [])

    def test_too_few_pairs_tell_nothing(self):
        self.assertIn("pairs", self.run_campaign(same_speed, turns="2")["failures"][0])

    def test_quantiles(self):
        # Of the tables of Student's t.
        for probability, freedom, expected in [(0.95, 2, 2.920), (0.975, 10, 2.228), (0.995, 5, 4.032),
                                               (0.975, 1, 12.706), (0.9995, 30, 3.646)]:
            self.assertAlmostEqual(same_speed.t_quantile(probability, freedom), expected, delta=5e-4)

    def test_bounds(self):
        ratios = [0.99, 1.0, 1.01, 1.0]
        (mean, alone), (_, together) = same_speed.mean_and_bound(ratios, 1), same_speed.mean_and_bound(ratios, 13)
        self.assertAlmostEqual(mean, 1, delta=1e-4)
        self.assertLess(1.0, alone)
        self.assertLess(alone, together)

    def test_a_pair_that_was_disturbed_counts_no_further_than_its_limit(self):
        ratios = [0.995, 1.0, 1.005, 1.0, 0.998, 1.002, 0.997, 1.003, 1.001, 0.999]
        undisturbed = same_speed.mean_and_bound(ratios, 13)
        for far in (1.3, 1e3):
            mean, bound = same_speed.mean_and_bound([*ratios, far], 13)
            self.assertLess(mean, 1.001)
            self.assertLess(bound, 1.01)
            self.assertLess(undisturbed[1], bound)
        self.assertGreater(same_speed.mean_and_bound([*ratios[:8], 1.3], 13)[1], 1.05, "nine pairs are taken as they are")

    def test_bounds_hold_as_often_as_they_say(self):
        # Ratios of which a tenth are disturbed, either side alike.
        draws = random.Random(3)
        tries, held = 2000, 0
        for _ in range(tries):
            logarithms = [draws.gauss(0, 0.1 if draws.random() < 0.1 else 0.01) for _ in range(24)]
            held += same_speed.mean_and_bound([math.exp(value) for value in logarithms], 1)[1] >= 1
        self.assertAlmostEqual(held / tries, same_speed.CONFIDENCE, delta=0.015)


if __name__ == "__main__":
    unittest.main()
