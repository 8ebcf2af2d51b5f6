"""Runs jobs of workloads/*/tests/parts/emulated_processor.py and the kernels' small shapes on an emulated processor:
`emulated_processor.py BUILD CPU`.

QEMU's user emulation offers a program exactly the instructions of CPU (Nehalem, Haswell): one that leaks in from a
template, a library or generated code ends in a fault. Exit code 77, which ctest lists as skipped, without QEMU.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/support"))
import gathered

# Every kind of kernel: generated, products, attention, recurrences, random draws, 8 bits, movements.
OPS = ["matmul", "prepacked_matmul", "packed_attention", "recurrence_outputs", "dropout_mask", "quantized_linear", "cast",
       "exp", "sin", "softmax", "sort", "gather", "cumsum", "pow"]
KERNELS = ":".join(["JitFused.*", "TileUnit.*", *(f"All/CpuOps.AgreeWithTheOracle/{op}" for op in OPS)])


def main():
    build, processor = pathlib.Path(sys.argv[1]), sys.argv[2]
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        print("not run: no qemu-x86_64 (Debian: qemu-user)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.txt"
        text.write_text("the quick brown fox jumps over the lazy dog. " * 200)
        # QEMU 7.2 reads masked elements too, and would fault at guard pages as no processor does.
        environment = {**os.environ, "FULLBORE_CACHE": folder, "FULLBORE_TEST_GUARDS": "off"}
        environment.pop("FULLBORE_PROCESSOR", None)
        for command in (
                *([build / "bin/fullbore", "train", *part.ARGUMENTS, f"data.path={text}", f"run.dir={folder}/run"]
                  for part in gathered.parts("emulated_processor").values()),
                [build / "bin/test_device", f"--gtest_filter={KERNELS}", "--gtest_brief=1"]):
            done = subprocess.run([emulator, "-cpu", processor, *map(str, command)], env=environment, cwd=folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                print(done.stdout)
                print(f"{processor}: {command[0].name} ended with {done.returncode}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
