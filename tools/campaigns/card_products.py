"""Products on an NVIDIA card beside cuBLASLt's: ours are to be at least `share` as fast, shape by shape.

`bench_card_matmul` measures both in turns. Where the machine has no cuBLASLt, there is nothing to compare with: the campaign
skips and says what was looked for. A shape without an algorithm of the library's is told, and fails nothing. With
FULLBORE_CUDA_CLUSTERS=1 in the environment large products are those of clusters of two blocks.

settings: share=0.85, rounds=11, size=full (or small, of which times mean nothing), driver=LIBRARY (in place of the system's; `fake`:
          the tests' own), cublaslt=LIBRARY (in place of what the loader finds)
"""

import json
import os
import subprocess


def run(context):
    share = context.setting("share", 0.85)
    rounds = context.setting("rounds", 11)
    size = context.setting("size", "full")
    driver = context.setting("driver", "")
    cublaslt = context.setting("cublaslt", "")
    environment = dict(os.environ)
    fake = str(context.root / context.build / "lib" / "libfullbore_fake_cuda.so")
    for variable, library in (("FULLBORE_CUDA_DRIVER", driver), ("FULLBORE_CUBLASLT", cublaslt or driver)):
        if library:
            environment[variable] = fake if library == "fake" else library
    folder = context.root / context.build / "bin"
    doctor = subprocess.run([str(folder / "fullbore"), "doctor", "--json"], env=environment, capture_output=True, text=True)
    found = json.loads(doctor.stdout)
    if "cuBLASLt" not in found["libraries"]:
        raise context.skip(f"cuBLASLt is not found: {found['unusable_libraries'].get('cuBLASLt', 'no reason given')}")
    program = folder / "bench_card_matmul"
    if not program.is_file():
        raise context.skip(f"{program} is not built: cmake --build --preset benches")
    done = subprocess.run([str(program), str(rounds), *(["small"] if size == "small" else [])], env=environment,
                          capture_output=True, text=True)
    if done.returncode != 0:
        return {"tries": 1, "failures": [f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"]}
    card, *rows = [json.loads(line) for line in done.stdout.splitlines()]
    failures = []
    for row in rows:
        if size == "full" and row["library"] and row["own_of_library"] < share:
            failures.append(f"{row['name']}, {row['product']}: {row['own']['microseconds']:.1f} us, "
                            f"{row['library']['microseconds']:.1f} by cuBLASLt: {row['own_of_library']:.2f}")
    return {"tries": len(rows), "failures": failures, "card": card["card"], "cublaslt": found["libraries"]["cuBLASLt"],
            "rows": rows}
