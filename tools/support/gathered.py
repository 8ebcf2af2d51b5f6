"""What tools and tests of the whole house gather from the folders of workloads/, and what is missing where one was deleted.

    configs/NAME.yaml     a link to workloads/X/configs/NAME.yaml
    docs/guide/NAME.md    a page, or a link to workloads/X/guide.md
    workloads/X/tests/parts/NAME.py    what X adds to the tool or test NAME; NAME says what such a module has
"""

import importlib.util
import os
import pathlib
import sys

sys.dont_write_bytecode = True  # the folders stay free of __pycache__
ROOT = pathlib.Path(__file__).resolve().parents[2]


def workload_of(path, root=ROOT):
    """The folder of workloads/ that a link of configs/ or docs/guide leads to; None where it is no such link."""
    if not path.is_symlink():
        return None
    target = pathlib.Path(os.path.normpath(path.parent / path.readlink()))
    folder = root / "workloads"
    return target.relative_to(folder).parts[0] if folder in target.parents else None


def absent_workloads(root=ROOT):
    """Names of folders that links lead to and that are not there. Documents tell of all workloads, so what they say of
    these cannot be held against a command that lacks them."""
    links = [*(root / "configs").glob("*"), *(root / "docs" / "guide").glob("*")]
    names = {workload_of(link, root) for link in links} - {None}
    return sorted(name for name in names if not (root / "workloads" / name).is_dir())


def leads_to_absent(path, root=ROOT):
    """Is it a link to a file of a workload that is not here?"""
    path = pathlib.Path(os.path.normpath(path))
    return workload_of(path, root) in absent_workloads(root)


def parts(name, root=ROOT):
    """The modules workloads/*/tests/parts/<name>.py, by folder."""
    found = {}
    for path in sorted((root / "workloads").glob(f"*/tests/parts/{name}.py")):
        folder = path.relative_to(root / "workloads").parts[0]
        spec = importlib.util.spec_from_file_location(f"{folder}_{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[folder] = module
    return found
