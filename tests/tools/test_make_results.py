"""tools/make_results must write the newest record of each benchmark, and name a stale page and a superseded record."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import tool

make_results = tool.load("make_results")


def side(name, seconds, mebibytes, ratios):
    spread = {"lower_quartile": 1, "upper_quartile": 9}
    return {"name": name, "seconds_per_step": {"median": seconds}, "peak_resident_bytes": mebibytes << 20, "first_loss": 2.5,
            "losses": [2.4, 2.25], "last_step": 12, "time_ratio_to": {key: {"median": value, **spread} for key, value in ratios.items()}}


def record(date="2026-01-01", config="tiny", processor="auto", kind="K1", peer="torch-eager-fp32", ratio=3.5):
    return {"schema": 2, "what": "a-step", "config": config, "title": config, "settings": ["model.dropout=0"], "date": date, "commit": "0123456789",
            "processor": processor, "machine": {"processor": "P", "microarchitecture": kind, "fp32_flops": 2e9, "bytes_per_second": 3e9},
            "job": {"batch": 4, "context": 8, "dropout": 0.0}, "rounds": 3,
            "sides": [side("fullbore-fp32", 0.01, 100, {"fullbore-fp32": 1, "fullbore-bf16": 0.5}),
                      side("fullbore-bf16", 0.02, 70, {"fullbore-fp32": 2, "fullbore-bf16": 1}),
                      side(peer, 0.035, 420, {"fullbore-fp32": ratio, "fullbore-bf16": 1.75}),
                      side("slow", 9, 10, {"fullbore-fp32": 900, "fullbore-bf16": 450})],
            "unavailable": [{"name": "jax-fp32", "reason": "no wheel\nfor this"}]}


class MakeResults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.readme = self.folder / "README.md"
        self.readme.write_text("before\n<!-- begin results -->\n<!-- end results -->\nafter\n")

    def put(self, name, **changes):
        (self.folder / f"{name}.json").write_text(json.dumps(record(**changes)))

    def run_tool(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
            status = make_results.main(["--results", str(self.folder), "--readme", str(self.readme), *arguments])
        return status, output.getvalue()

    def test_the_fastest_of_either_are_compared(self):
        self.put("a")
        self.assertEqual(self.run_tool()[0], 0)
        row = "| tiny, 4 x 8 | K1 | 3.50 times | 100 | 4.2 times | 2.5000 | 2.5000 | torch-eager-fp32 |"
        page = (self.folder / "RESULTS.md").read_text()
        self.assertIn(row, page)
        self.assertIn("| torch-eager-fp32 | 35.00 | 3.50 (1.00 to 9.00) | 1.75 (1.00 to 9.00) | 420 | 2.5000 | 2.2500 | 12 |", page)
        self.assertIn("| jax-fp32 | not available: no wheel |", page)
        readme = self.readme.read_text()
        self.assertTrue(readme.startswith("before\n<!-- begin results -->\n| job") and readme.endswith("end results -->\nafter\n"))
        self.assertIn(row, readme)
        self.assertIn(">3.5</text>", (self.folder / "peers.svg").read_text())

    def test_one_record_of_a_benchmark_and_kind_counts(self):
        self.put("old", date="2026-01-01", ratio=7.77)
        self.put("new", date="2026-01-02")
        self.put("other-kind", date="2025-12-01", kind="K2", ratio=4.44)
        self.put("lowered", processor="avx2", ratio=6.66)
        status, output = self.run_tool("--check")
        self.assertEqual(status, 1)
        self.assertIn("old.json is superseded by new.json", output)
        self.assertEqual(output.count("superseded"), 1)
        self.run_tool()
        page, readme = (self.folder / "RESULTS.md").read_text(), self.readme.read_text()
        for text, in_page, in_readme in [("7.77", False, False), ("3.50", True, True), ("4.44", True, False), ("6.66", True, False)]:
            self.assertEqual((f"{text} times" in page, f"{text} times" in readme), (in_page, in_readme), text)
        self.assertEqual(self.run_tool("--check")[0], 1)  # old.json is still there
        (self.folder / "old.json").unlink()
        self.assertEqual(self.run_tool("--check"), (0, ""))

    def test_a_card_is_a_kind_of_its_own_and_its_memory_counts(self):
        self.put("a")
        on_card = record(ratio=1.25)
        on_card.update(device="cuda", sides=on_card["sides"][:1] + on_card["sides"][2:3])
        on_card["machine"]["card"] = "Card 1"
        on_card["sides"][0]["planned_peak_bytes"] = 50 << 20
        on_card["sides"][1]["peak_device_bytes"] = 200 << 20
        (self.folder / "b.json").write_text(json.dumps(on_card))
        self.assertEqual(self.run_tool(), (0, ""))
        readme = self.readme.read_text()
        self.assertIn("| tiny, 4 x 8, on a card | Card 1 | 1.25 times | 50 | 4.0 times |", readme)
        self.assertIn("| tiny, 4 x 8 | K1 | 3.50 times | 100 | 4.2 times |", readme)

    def test_check_notices_what_is_stale_and_leaves_it_alone(self):
        self.put("a")
        self.run_tool()
        for name in ("RESULTS.md", "peers.svg", "README.md"):
            with self.subTest(name):
                path = self.folder / name
                good = path.read_text()
                path.write_text(good.replace("3.5", "4.5"))
                status, output = self.run_tool("--check")
                self.assertEqual(status, 1)
                self.assertIn(f"{name} is stale", output)
                self.assertIn("4.5", path.read_text())
                path.write_text(good)

    def test_older_studies_and_pages_without_a_record_are_named(self):
        self.put("a")
        (self.folder / "2026-01-02-loops.txt").write_text("new\n")
        self.run_tool()
        self.assertEqual(self.run_tool("--check"), (0, ""))
        (self.folder / "2026-01-01-loops.txt").write_text("old\n")
        (self.folder / "2026-01-03-gone.md").write_text("")
        status, output = self.run_tool("--check")
        self.assertEqual(status, 1)
        self.assertIn("2026-01-01-loops.txt is superseded by 2026-01-02-loops.txt", output)
        self.assertIn("gone.md has no record", output)
        self.assertNotIn("stale", output)

    def test_what_is_no_record_is_an_error(self):
        (self.folder / "a.json").write_text('{"schema": 2}')
        status, output = self.run_tool()
        self.assertEqual(status, 2)
        self.assertIn("a.json", output)


if __name__ == "__main__":
    unittest.main()
