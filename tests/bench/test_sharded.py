"""One text over several processes is what it is in one."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_sharded_over_processes_is_one_process(processes):
    """Forward and backward; the program itself compares and fails."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [*command, "-m", "bench.sharded"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("output and gradients agree") == processes
    assert "FutureWarning" not in done.stderr, done.stderr
