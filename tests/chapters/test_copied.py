"""What the chapters offer to copy runs where there is torch and nothing of the book."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SIZES = """
import torch
d, heads, kv_heads, width, base, past, seq_len = 16, 4, 2, 24, 10000.0, 1_000_000, 7
x, W = torch.randn(3, seq_len, width), torch.randn((heads + kv_heads) * d, width)
W_q, W_k = W.split((heads * d, kv_heads * d))
"""
ALONE = "assert not [name for name in sys.modules if name.startswith(('rope_lib', 'lab', 'figures'))]"
# Chapter, cells (of a cell that prints, what it prints), what stands before them, and a trial.
COPIED = [
    (
        "02_sinusoidal_encoding",
        ["enc-module"],
        "",
        "SinusoidalEncoding(8, max_len=9, dropout=0)(torch.ones(2, 5, 8))",
    ),
    ("06_rope_in_code", ["a6000004", "a6000006"], SIZES, "assert turned_q.shape == q.shape and not turned_q.equal(q)"),
    (
        "08_linear_attention",
        ["delta-functions"],
        "import torch\n",
        "S, one = torch.zeros(2, 4, 4), torch.ones(2)\n"
        "delta_rule_step(S, *torch.randn(3, 2, 4), one, one)\n"
        "delta_rule_chunk(S, *torch.randn(3, 2, 5, 4), torch.ones(2, 5), torch.ones(2, 5))",
    ),
    (
        "rope_in_five_minutes",
        ["functions", "rotate"],
        "",
        "rotate(torch.ones(1, 2, 3, 8), *rope_tables(torch.arange(3), 8), interleaved=True)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("chapter", "names", "before", "trial"), COPIED, ids=lambda x: x if isinstance(x, str) else "")
def test_it_runs_with_torch_alone(chapter, names, before, trial, tmp_path):
    notebook = json.loads((ROOT / "chapters" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    code = before
    for name in names:
        printed = "getsource" in "".join(cells[name]["source"])
        code += "".join(cells[name]["outputs"][0]["text"] if printed else cells[name]["source"]) + "\n\n"
    program = f"{code}\n{trial}\nimport sys\n{ALONE}"
    file = tmp_path / "copied.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", file], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
