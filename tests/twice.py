"""What a notebook's check does not do: run each cell again, as readers do, and with a change that its claim refuses.

nbval runs each cell once. Here a cell that has passed runs a second time in a fork of its kernel: what it then counts,
appends, draws by chance or binds anew is lost with the fork, and the cells after it find what a first run leaves. If
it has a claim, it runs in another fork with the change that it refused when `make attack` was run last, or with others
until it refuses one. A plugin, which make names where more time is not too much: -p tests.twice
"""

import ast
import inspect
import json
import re
import sys
from collections import Counter

import pytest
from nbval.plugin import IPyNbCell

from tools import attack

PICTURE = re.compile(r"figures\.\w+\.\w+\(\)")  # one call, which leaves nothing behind
SECONDS = 300  # a run that takes longer hangs: the slowest of those that are tried takes some seconds
# macOS forks, too, but what its own libraries do in a fork is undefined.
NO_FORK = None if sys.platform == "linux" else "a kernel is forked on Linux only"
RAN_ONCE = "ran once"
REFUSED = json.loads(attack.STORED.read_text(encoding="utf-8"))["refused"]


def again(source: str, seconds: float, changes: str | None = None, known: str | None = None) -> str | None:
    """Run a cell in a fork of this kernel: what is wrong with it, "" if nothing, None if the kernel cannot be forked.

    With the file of a program that makes `changes` it is wrong that none is refused; a `known` one is tried first.

    This is sent to the kernel as text, which knows nothing of the tests: it imports all that it needs, and binds
    nothing.
    """
    import importlib.util
    import os
    import select
    import signal
    import sys
    import time
    import traceback

    from IPython import get_ipython
    from IPython.core.displayhook import CapturingDisplayHook
    from IPython.utils.capture import capture_output

    if changes and not (program := sys.modules.get("_changes")):  # read once, for all forks
        spec = importlib.util.spec_from_file_location("_changes", changes)
        program = sys.modules["_changes"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        return None  # CUDA refuses to work in a fork
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        said, end = b"", time.monotonic() + seconds
        while select.select([reader], [], [], max(0, end - time.monotonic()))[0]:
            if not (piece := os.read(reader, 65536)):
                break
            said += piece
        else:
            os.kill(child, signal.SIGKILL)
            said = f"It has not ended after {seconds} seconds.".encode()
        os.close(reader)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return said.decode() or (f"Its process ended with {ended}." if ended else "")
    try:  # The fork. The kernel's sockets are the parent's: nothing that is printed or shown may reach them.
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if torch:
            torch.set_num_threads(1)  # the parent's other threads are not in the fork, which would wait for them
        shell = get_ipython()
        with capture_output():
            if changes:
                before = dict(shell.user_ns)
                found = program.attack_source(source, before, shell.user_ns, known)
                wrong = "" if found["refused"] else f"It refuses none of these: {found}"
            else:
                shell.display_trap.hook = CapturingDisplayHook(shell, [])  # run_cell would put the kernel's own back
                result = shell.run_cell(source, store_history=False)
                error = result.error_before_exec or result.error_in_exec
                wrong = "".join(traceback.format_exception(error)) if error else ""
        with open(writer, "w", encoding="utf-8", errors="backslashreplace") as pipe:
            pipe.write(wrong)
        os._exit(0)
    finally:
        os._exit(1)


def asked(item: pytest.Item) -> bool:
    """Whether a test is a cell that runs twice: what trains or is timed for seconds does not."""
    if not isinstance(item, IPyNbCell) or not item.options["check"] or item.options["check_exception"]:
        return False
    # A page's own first cell would remove, with the folder that it replaces, what this kernel imports from.
    return item.cell.get("id") != "book-code" and not PICTURE.fullmatch(item.cell.source)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """After a cell has passed, run it again, and changed."""
    result = yield
    if asked(item):
        cell = item.cell
        wrong = None if NO_FORK else in_kernel(item.parent.kernel, cell.source, SECONDS)
        if wrong:
            item.raise_cell_error("Run twice in a row, this cell fails", wrong)
        if wrong is None:
            item.user_properties.append((RAN_ONCE, NO_FORK or "a kernel that holds a GPU cannot be forked"))
        elif attack.holds_claim(attack.parsed(cell.source)):
            known = REFUSED.get(item.parent.path.stem, {}).get(cell.get("id"))
            if wrong := in_kernel(item.parent.kernel, cell.source, SECONDS, attack.__file__, known):
                item.raise_cell_error("Whatever is changed, this cell passes", wrong)
    return result


def in_kernel(kernel, *arguments) -> str | None:
    """What `again` says there. As an expression of the user's it leaves nothing in the names and outputs of cells."""
    call = f"(lambda names: exec({inspect.getsource(again)!r}, names) or names['again'](*{arguments!r}))({{}})"
    asked_for = kernel.kc.execute("", silent=True, user_expressions={"again": call}, allow_stdin=False)
    while (message := kernel.get_message("shell", timeout=SECONDS + 60))["parent_header"].get("msg_id") != asked_for:
        pass
    said = message["content"]["user_expressions"]["again"]
    return ast.literal_eval(said["data"]["text/plain"]) if said["status"] == "ok" else "\n".join(said["traceback"])


def pytest_terminal_summary(terminalreporter) -> None:
    """A line for each reason for which cells ran once."""
    properties = [pair for report in terminalreporter.stats.get("passed", ()) for pair in report.user_properties]
    for reason, number in Counter(reason for name, reason in properties if name == RAN_ONCE).items():
        terminalreporter.write_line(f"{number} cells ran once, not twice in a row: {reason}")
