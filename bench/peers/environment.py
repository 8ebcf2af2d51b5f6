"""The virtual environment that the peers run in: build/peers of this checkout."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# PyTorch's wheels without CUDA: a tenth of the size of those of the general index.
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def install(python):
    """What requirements.txt asks for: torch for CPUs where that index can be reached, else the general one's."""
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    cpu = subprocess.run([*pip, "--upgrade", "--no-deps", "--retries", "0", "--timeout", "15",
                          "--index-url", CPU_WHEELS, "torch"], stdout=sys.stderr, check=False)
    if cpu.returncode != 0:
        print(f"{CPU_WHEELS} cannot be reached: taking torch from the general index", file=sys.stderr)
    subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], stdout=sys.stderr, check=True)


def python():
    """Its interpreter; makes and fills it if need be, and again when requirements.txt has changed."""
    folder = ROOT / "build/peers"
    interpreter, stamp = folder / "bin/python", folder / "requirements.installed"
    wanted = (HERE / "requirements.txt").read_text()
    if not interpreter.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if not stamp.exists() or stamp.read_text() != wanted:
        install(interpreter)
        stamp.write_text(wanted)
    return interpreter
