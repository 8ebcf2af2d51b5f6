#!/usr/bin/env python3
"""Tests of bench/peers: how contenders are run and recorded, with contenders that only pretend."""
import contextlib
import dataclasses
import io
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
sys.dont_write_bytecode = True
import comparison  # noqa: E402
import record  # noqa: E402
import sides  # noqa: E402
import tool  # noqa: E402

PRETENDER = """
import json, sys
seconds = float(sys.argv[2])
def say(**record): print(json.dumps(record), flush=True)
say(ready=True, side=sys.argv[1], flags=["none"], threads=1, precision="fp32", parameters=10, first_loss=2.5,
    first_step_seconds=0.5, start_seconds=0.75, job={"batch": 2, "context": 4, "layers": 1, "width": 8},
    machine={"processor": "p", "fp32_flops": 2e9}, planned_peak_bytes=3 << 20, roofline_seconds=0.001, launches=7)
made = 1
for line in sys.stdin:
    made += int(line)
    say(steps=int(line), step=made, seconds_per_step=seconds, least_seconds_per_step=seconds,
        cpu_seconds_per_step=seconds, tokens_per_second=8 / seconds, loss=2.0, peak_resident_bytes=5 << 20)
"""

JOB = comparison.Job(what="mine-step", folder=pathlib.Path(), binary="", config="", settings=(), peers={}, title="mine",
                     work="{batch} rows of {context}", titles={"large": "MINE"})


def pretender(name, seconds, side="torch"):
    return sides.Side(name, [sys.executable, "-c", PRETENDER, side, seconds], {}).await_ready()


class SidesTest(unittest.TestCase):
    def test_a_side_answers_and_ends(self):
        side = pretender("a", 0.25)
        self.assertEqual(side.ready["first_loss"], 2.5)
        self.assertEqual(side.run(4)["step"], 5)
        self.assertEqual(side.warm_up(2.0), 0.25)
        self.assertEqual(side.run(1)["step"], 5 + 3 + 6 + 1)  # 3 and then as many as fill the rest
        self.assertTrue(sides.await_silence([side]))
        side.close()
        self.assertEqual(side.process.returncode, 0)

    def test_what_cannot_run_says_why(self):
        with self.assertRaisesRegex(sides.Unavailable, "no such precision"):
            sides.Side("b", [sys.executable, "-c", "import sys; sys.exit('warning\\nno such precision')"], {}).await_ready()

    def test_a_spinning_side_is_noticed(self):
        spin = "print('{}', flush=True)\nwhile True: pass"
        side = sides.Side("c", [sys.executable, "-c", spin], {}).await_ready()
        try:
            before = side.processor_seconds()
            while side.processor_seconds() < before + 0.05:  # however late it gets its turn
                time.sleep(0.01)
        finally:
            side.process.kill()
            side.close()
        turns = itertools.count()
        spinning = types.SimpleNamespace(processor_seconds=lambda: next(turns))
        self.assertFalse(sides.await_silence([spinning], limit=0.1))


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.ours, self.peer = pretender("fullbore-fp32", 0.25, "fullbore"), pretender("torch-eager-fp32", 0.5)
        for side in (self.ours, self.peer):
            side.blocks = [{**side.run(2), "round": i} for i in (1, 2, 3)]
            side.close()
        job_words = ["configs/mine-x.yaml", "engine.threads=2", "data.path=/home/me/play.txt"]
        options = types.SimpleNamespace(job=job_words, passive=False, rounds=3, block_seconds=1, warm_up_seconds=3,
                                        processor="avx2", device="cpu", on_card=False, time_limit=None)
        self.record = record.result([self.ours, self.peer], [("jax-fp32", "no module named jax")], options, JOB)

    def test_ratios_are_of_the_same_rounds(self):
        self.assertEqual(self.record["sides"][1]["time_ratio_to"]["fullbore-fp32"]["median"], 2)
        self.assertEqual(self.record["sides"][0]["tokens_per_second"], 32)
        self.assertEqual(self.record["config"], "mine-x")

    def test_the_table_names_every_side(self):
        text = record.markdown(self.record)
        for part in ("| torch-eager-fp32 | 500.00 | 16 | 2.00 (2.00 to 2.00) | 0.8 | 0.2 | 5 |", "| fullbore-fp32 | 250.00",
                     "not available: no module named jax", "at 0 % of the roofline", "2 GFLOP/s fp32",
                     "; every side kept to avx2; every side from"):
            self.assertIn(part, text)
        lines = [line for line in text.splitlines() if line.startswith("| ")]
        self.assertEqual(len({line.count(" |") for line in lines}), 1, "rows of one length")

    def test_a_job_says_what_it_is_and_what_it_counts(self):
        self.assertIn("10 parameters, 2 rows of 4; settings", record.markdown(self.record))
        self.record["job"]["counted"] = "pictures"
        self.assertIn("| pictures/s |", record.markdown(self.record))

    def test_a_title_has_the_size(self):
        self.assertEqual(self.record["title"], "mine 0.0 M")
        self.assertEqual(record.title(JOB, "large", 10_745_088), "MINE 10.7 M")
        self.assertEqual(record.title(JOB, "large", 124_046_592), "MINE 124 M")

    def test_the_kind_of_processor_is_named(self):
        def kind(vendor, family, flags="fpu"):
            return record.microarchitecture(f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\n"
                                            f"model name\t: x\nflags\t\t: {flags}\npower management:\n\nprocessor\t: 1\n")
        self.assertEqual(kind("AuthenticAMD", 26), "Zen 5")
        self.assertEqual(kind("AuthenticAMD", 25, "fpu avx512f sse"), "Zen 4")
        self.assertEqual(kind("AuthenticAMD", 25), "Zen 3")
        self.assertEqual(kind("GenuineIntel", 6), "GenuineIntel family 6 model 17")
        self.assertIsNone(record.microarchitecture("Processor : ARMv8\n"))

    def test_paths_of_this_machine_stay_out(self):
        self.peer.command = ["/home/me/venv/bin/python", f"{ROOT}/bench/peers/mine_torch.py", "share=/tmp/x/start.safetensors"]
        self.assertEqual(record.shown_command(self.peer),
                         ["python", "bench/peers/mine_torch.py", "share=start.safetensors"])
        self.assertEqual(record.shown_word("data.path=/home/me/play.txt"), "data.path=play.txt")
        self.assertEqual(record.shown_word("/home/me/play.txt"), "play.txt")
        self.assertEqual(record.shown_word("data.path=texts/play.txt"), "data.path=texts/play.txt")
        self.assertEqual(self.record["settings"], ["engine.threads=2", "data.path=play.txt"])


STEPPING = """
import json, sys
losses, seconds = json.loads(sys.argv[1]), float(sys.argv[2])
def say(**record): print(json.dumps(record), flush=True)
say(ready=True, side="torch", precision="fp32", parameters=10, first_loss=losses.pop(0))
for line in sys.stdin:
    say(steps=1, seconds_per_step=seconds, loss=losses.pop(0))
"""


class AgreementTest(unittest.TestCase):
    def checked(self, losses, seconds=0.1, ours=None, steps=3):
        side = sides.Side("a", [sys.executable, "-c", STEPPING, str(losses), str(seconds)], {}).await_ready()
        self.addCleanup(side.close)
        job = dataclasses.replace(JOB, checked_steps=steps)
        run = comparison.Comparison(job, types.SimpleNamespace(on_card=False), pathlib.Path("/nowhere"))
        run.ours = [ours] if ours else []
        run.check(side)
        return side

    def test_losses_of_several_steps_are_compared(self):
        ours = self.checked([3.0, 2.0, 1.0])
        self.assertEqual(ours.ready["first_losses"], [3.0, 2.0, 1.0])
        self.assertEqual(self.checked([3.0, 2.0001, 1.0], ours=ours).ready["first_losses"], [3.0, 2.0001, 1.0])
        with self.assertRaisesRegex(SystemExit, "loss of step 3 is 1.01, that of a 1.0: not the same work"):
            self.checked([3.0, 2.0, 1.01], ours=ours)
        with self.assertRaisesRegex(SystemExit, "the first loss is 3.01"):
            self.checked([3.01, 2.0, 1.0], ours=ours)
        self.assertNotIn("first_losses", self.checked([3.0], steps=1).ready)

    def test_a_slow_side_makes_no_steps_that_are_not_measured(self):
        ours = self.checked([3.0, 2.0, 1.0])
        slow = self.checked([3.0, 2.0], seconds=comparison.SLOW_STEP + 1, ours=ours)
        self.assertEqual((slow.slow, slow.ready["first_losses"]), (True, [3.0, 2.0]))
        self.assertFalse(ours.slow)
        self.assertEqual(self.checked([3.0, 2.0, 9.0], ours=slow).ready["first_losses"], [3.0, 2.0])  # as many as it told

    def test_a_side_that_ends_in_a_later_step_is_not_available(self):
        with tempfile.TemporaryDirectory() as scratch:
            options = types.SimpleNamespace(passive=False, processor="auto", start_limit=60, on_card=False)
            run = comparison.Comparison(dataclasses.replace(JOB, checked_steps=3), options, pathlib.Path(scratch))
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertIsNone(run.start("a", [sys.executable, "-c", STEPPING, "[3.0, 2.0]", "0.1"]))
            self.assertEqual(run.unavailable, [("a", "IndexError: pop from empty list")])


class CardTest(unittest.TestCase):
    """How sides are begun on a card, and what a limit of time does."""

    def comparison(self, scratch, commands, **options):
        job = dataclasses.replace(JOB, folder=pathlib.Path(scratch), card_peers={"torch-best": commands})
        given = {"passive": False, "processor": "auto", "start_limit": 60, "on_card": True, "peer_device": "cuda", "rounds": 2,
                 "block_seconds": 0.5, "warm_up_seconds": 1, "precisions": ["fp32"], "time_limit": None, **options}
        run = comparison.Comparison(job, types.SimpleNamespace(**given), pathlib.Path(scratch))
        run.ours = [pretender("fullbore-fp32", 0.25, "fullbore")]
        self.addCleanup(run.ours[0].close)
        return run

    def started(self, commands, **options):
        """The peer's side and what could not run."""
        with tempfile.TemporaryDirectory() as scratch:
            pathlib.Path(scratch, "good.py").write_text(PRETENDER.replace("sys.argv[1]", "'torch'").replace("float(sys.argv[2])", "0.5"))
            pathlib.Path(scratch, "bad.py").write_text("import sys; sys.exit('one line\\nno capture')")
            # Ends in one of the steps that prove it.
            pathlib.Path(scratch, "late.py").write_text(pathlib.Path(scratch, "good.py").read_text().replace(
                "    made += int(line)", "    sys.exit('captured badly')"))
            run = self.comparison(scratch, commands, **options)
            with contextlib.redirect_stderr(io.StringIO()) as said:
                side = run.start_peer("torch-best", "fp32", sys.executable)
            if side:
                self.addCleanup(side.close)
            return side, run.unavailable, said.getvalue()

    def test_what_cannot_run_gives_way_to_the_next(self):
        side, unavailable, said = self.started([["bad.py", "capture=1"], ["late.py"], ["good.py", "mode=compile"], ["bad.py"]])
        self.assertEqual(unavailable, [("torch-best-fp32", "no capture"), ("torch-best-fp32", "captured badly")])
        self.assertIn("good.py", side.command[1])
        self.assertIn("mode=compile", side.command)
        self.assertIn("device=cuda", side.command)
        self.assertIn("  one line", said)
        self.assertEqual(side.run(1)["step"], 1 + comparison.STEPS_OF_PROOF + 1)

    def test_a_limit_of_time_keeps_some_for_the_rounds(self):
        # Of two sides with two rounds of half a second after one of warm-up.
        side, unavailable, _ = self.started([["good.py"], ["good.py"]], time_limit=3.9)
        self.assertIsNone(side)
        self.assertEqual(unavailable, [("torch-best-fp32", "not begun: the time was over")])
        self.assertIsNotNone(self.started([["good.py"]], time_limit=64)[0])

    def test_rounds_end_with_the_time(self):
        with tempfile.TemporaryDirectory() as scratch:
            run = self.comparison(scratch, [], rounds=9, time_limit=60)
            run.end = time.monotonic() - 1
            with contextlib.redirect_stderr(io.StringIO()) as said:
                run.measure([])
            self.assertEqual(len(run.ours[0].blocks), 1)  # never none
            self.assertIn("the time is over after 1 rounds", said.getvalue())

    def test_a_peer_that_ends_in_a_round_leaves_the_others_theirs(self):
        # Its start is step 1, its warm-up makes steps 2 to 4; a block is of one step.
        dying = PRETENDER.replace("    made += int(line)", "    made += int(line)\n    if made > 5: sys.exit('lost the card')")
        with tempfile.TemporaryDirectory() as scratch:
            run = self.comparison(scratch, [], rounds=3, warm_up_seconds=0)
            group = [sides.Side("torch-best-fp32", [sys.executable, "-c", dying, "torch", "0.5"], {}).await_ready()]
            with contextlib.redirect_stderr(io.StringIO()):
                run.measure(group)
            self.assertEqual([block["round"] for block in run.ours[0].blocks], [1, 2, 3])
            self.assertEqual([block["round"] for block in group[0].blocks], [1])
            self.assertEqual(run.unavailable, [("torch-best-fp32", "round 2: lost the card")])

    def test_a_side_that_hangs_is_ended(self):
        silent = "import sys, time\nprint('{}', flush=True)\nsys.stdin.readline()\ntime.sleep(60)"
        side = sides.Side("a", [sys.executable, "-c", silent], {}).await_ready()
        with self.assertRaisesRegex(sides.Unavailable, "did not answer within 0 s"):
            side.run(1, limit=0.2)
        side.close()

    def test_steps_of_all_workloads_name_their_comparison(self):
        script = tool.load("../bench/peers/card_beside_torch")
        steps = script.steps([])
        self.assertEqual([step["worth"] for step in steps], sorted({step["worth"] for step in steps}), "no two are as worthy")
        for step in steps:
            job, _ = script.job_of(step)
            self.assertIn("torch-best", job.card_peers, step["name"])
            self.assertGreater(step["asked_ratio"], 1)
            for commands in job.card_peers.values():
                for command in commands:
                    self.assertTrue((job.folder / command[0]).exists(), command)
        with self.assertRaisesRegex(SystemExit, "no step is called nonsense; known: "):
            script.steps(["nonsense"])


class EnvironmentTest(unittest.TestCase):
    def test_peers_are_kept_to_the_level_of_ours(self):
        with tempfile.TemporaryDirectory() as scratch:
            def variables(processor):
                options = types.SimpleNamespace(passive=False, processor=processor)
                return comparison.Comparison(None, options, pathlib.Path(scratch)).environment("a")
            level = variables("avx2")
            self.assertEqual([level[name] for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "XLA_FLAGS")],
                             ["avx2", "AVX2", "--xla_cpu_max_isa=AVX2"])
            self.assertNotIn("ONEDNN_MAX_CPU_ISA", variables("auto"))


class CommandLineTest(unittest.TestCase):
    def test_peers_are_told_apart_by_name(self):
        scripts = sorted(ROOT.glob("workloads/*/bench/peers/compare_*"))
        self.assertTrue(scripts)
        for script in scripts:
            done = subprocess.run([sys.executable, script, "--binary", sys.executable,
                                   "--peers", "torch-eagre"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("unknown 'torch-eagre'; known: torch-eager, ", done.stderr)


if __name__ == "__main__":
    unittest.main()
