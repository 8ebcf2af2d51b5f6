"""Which files of the repository were changed last."""

import subprocess


def git(root, *arguments):
    """Lines of the answer; none where git refuses."""
    done = subprocess.run(["git", "-c", f"safe.directory={root}", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def newest_first(root, wanted):
    """Files that are there and of which wanted(name) holds, those changed last first: what is not committed, then commit
    by commit. Empty where there is no history."""
    names = git(root, "diff", "--name-only", "HEAD", "--") + git(root, "ls-files", "-o", "--exclude-standard")
    names += git(root, "log", "--format=", "--name-only", "HEAD", "--")
    return [name for name in dict.fromkeys(names) if wanted(name) and (root / name).is_file()]


def is_ours(name):
    """Whether it belongs to the library, the workloads or the command: no test, no benchmark, no code of a GPU."""
    return (name.startswith(("fullbore/", "workloads/", "apps/"))
            and not any(part in name for part in ("/tests/", "/bench/", "/cuda/kernels/")))
