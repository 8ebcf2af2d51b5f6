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

# `train` keeps a weight that the file `weight` beside the script says; a round of `bench` takes the time of the file `seconds`,
# and as much longer as the script was stopped meanwhile.
SCRIPT = """#!{python}
import json, os, pathlib, struct, sys, time
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
    assert sys.argv[sys.argv.index("--steps") + 1] == "1"
    seconds = float((here / "seconds").read_text())
    rounds = []
    for _ in range(int(sys.argv[sys.argv.index("--rounds") + 1])):
        began = time.monotonic()
        time.sleep(seconds)
        longer = time.monotonic() - began - seconds
        rounds.append(seconds + (longer if longer > 0.08 else 0))
    print(json.dumps({{"contenders": [{{"round_seconds": rounds}}]}}))
"""


class TwoBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("old", "new"):
            self.build(name, "w 1", 0.02)

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
        self.build("new", "w 1.0000001", 0.02)
        self.assertEqual(self.run_campaign(same_bits)["failures"], ["small: 1 of 1 tensors differ: weights: w"])
        self.build("new", "v 1", 0.02)
        self.assertEqual(self.run_campaign(same_bits)["failures"], ["small: other tensors: weights: v, weights: w"])

    def test_a_build_that_fails(self):
        (self.folder / "new" / "build" / "release" / "bin" / "weight").unlink()
        self.assertIn("new: train", self.run_campaign(same_bits)["failures"][0])

    def test_a_binary_that_is_missing(self):
        with self.assertRaises(campaign.Skip):
            self.run_campaign(same_bits, old="nowhere/fullbore")

    def test_speed(self):
        quick = {"turns": "2", "visit": "2.4", "slice": "0.15"}
        result = self.run_campaign(same_speed, **quick)
        self.assertEqual(result["failures"], [])
        self.assertEqual(result["configurations"][0]["upper_bound"], 1.0)
        self.build("new", "w 1", 0.0204)
        failures = self.run_campaign(same_speed, **quick)["failures"]
        self.assertEqual(failures, ["small: the upper bound 1.0200 is above 1.01"])
        self.build("new", "w 1", 0.016)
        self.assertEqual(self.run_campaign(same_speed, **quick)["failures"], [])

    def test_too_few_pairs_tell_nothing(self):
        failures = self.run_campaign(same_speed, turns="1", visit="0.2", slice="0.2")["failures"]
        self.assertIn("pairs", failures[0])

    def test_slices_lie_between_stops(self):
        self.assertEqual(same_speed.slices([1, 2, 9, 3, 1, 8, 2, 1, 3], 5), [[3, 1], [2, 1, 3]])
        self.assertEqual(same_speed.slices([1, 9, 9, 1, 2], 5), [[], [1, 2]], "a slice in which no step was whole")
        self.assertEqual(same_speed.slices([1, 2, 3, 1], 5), [], "never stopped")

    def test_neighbours_are_combined(self):
        pairs = [(1, 2), (4, 2), (9, 5), (4, 5), (7, 7)]
        for found, expected in zip(same_speed.combined(pairs, 2), [(2, 2), (6, 5), (7, 7)], strict=True):
            for side, value in zip(found, expected):
                self.assertAlmostEqual(side, value)
        self.assertEqual(len(same_speed.combined(pairs, 3)), 2)
        self.assertEqual(len(same_speed.combined(pairs[:4], 3)), 1, "one of three is left out")

    def test_visits_are_longer_where_ratios_scatter(self):
        wide, narrow = [1.0, 1.2, 0.8, 1.1], [1.0, 1.02, 0.98, 1.01]
        spent = {"wide": 10, "narrow": 10, "few": 10}
        found = same_speed.lengths({"wide": wide, "narrow": narrow, "few": [1.0]}, spent, 20)
        self.assertAlmostEqual(sum(found.values()), 60)
        self.assertAlmostEqual(found["wide"] / found["narrow"], 2 / same_speed.SHORTEST, delta=0.1)
        self.assertGreater(found["few"], found["wide"])
        faster = {"wide": [0.5 * ratio for ratio in wide], "narrow": narrow, "few": [1.0]}
        for job, seconds in same_speed.lengths(faster, spent, 20).items():
            self.assertAlmostEqual(seconds, found[job])
        self.assertEqual(same_speed.lengths({"a": [1.0], "b": []}, {"a": 1, "b": 1}, 20), {"a": 20, "b": 20})

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
