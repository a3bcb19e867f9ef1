"""Asking an engine: over HTTP, or from a file of its answers."""

import email.utils
import http.client
import json
import math
import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

from tqdm import tqdm

from lab.doctor.names import NotUnderstood, Place, naming_of, numbered
from lab.doctor.table import Table

LIKELY, FEWEST = 20, 5  # how many tokens the engine is asked for, and needed
FLOOR = -100.0  # some engines write -9999 or -3.4e38 for the logarithm of 0: what is lower than this is left out
TIMEOUT = 300  # seconds for one answer
PAUSE, LONGEST = 2, 300  # seconds before a second try; and of all pauses for one prompt
IN_A_ROW = 3  # refusals of one kind: then it stops asking
NOT_READY = (429, 502, 503)  # too many requests; a gateway before a server that is not there yet; loading
Answer = list[dict[int, float]]  # for each token behind the prompt: log-probabilities of the likeliest ones


class Refused(Exception):
    """The engine answered with an error: its status and its text."""

    def __init__(self, status: int, text: str):
        super().__init__(f"{status}: {text}")
        self.status, self.kind, self.example = status, str(status), text


class NotReady(Refused):
    """It may answer later.

    Attributes:
        after: the seconds that it asks to wait, if it says so.
    """

    def __init__(self, status: int, text: str, after: float | None):
        super().__init__(status, text)
        self.after = after


class Dropped(ConnectionError):
    """The connection could not be made, or broke off: it may hold the next time."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error like others: the key goes to the address that was given, and nowhere else."""

    def redirect_request(self, *args):
        return None


@dataclass(frozen=True)
class Server:
    """An OpenAI-compatible server.

    Attributes:
        address: with or without /v1 at its end.
        model: the name that it knows the model by, if it wants one.
        key: if it wants one.
    """

    address: str
    model: str | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self):
        if self.key is not None and not re.fullmatch("[!-~]+", self.key):
            raise ValueError("the key has a space, or a sign that is not ASCII, in it: no header can carry it")

    @property
    def url(self) -> str:
        """Where it is asked."""
        return self.address.strip().rstrip("/").removesuffix("/v1") + "/v1/completions"

    def completion(self, prompt: list[int] | str, **settings: int) -> object:
        """What it answers.

        Raises:
            Refused: with an error.
            NotUnderstood: with something that is no JSON.
            ConnectionError: not at all; `Dropped` where a second try may help.
        """
        body = {"prompt": prompt, "temperature": 0, **settings} | ({"model": self.model} if self.model else {})
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as answer:
                text = answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._silence(error) from error
        text = self._without_key(text)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            if text.startswith(("data:", "event:")):
                raise NotUnderstood("its answer is a stream of events, which was not asked for") from error
            raise NotUnderstood("its answer is no JSON", json.dumps(text[:100], ensure_ascii=False)) from error

    def _refusal(self, error: urllib.error.HTTPError) -> Refused:
        """A status that is an error, with the first words of its text."""
        try:
            text = error.read(500).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            text = ""
        text = self._without_key(" ".join(text.split()) or str(error.reason))[:200]
        if 300 <= error.code < 400 and (target := error.headers.get("Location")):
            return Refused(error.code, f"it sends on to {self._without_key(target)}, which is not followed")
        if error.code in NOT_READY:
            return NotReady(error.code, text, seconds(error.headers.get("Retry-After")))
        return Refused(error.code, text)

    def _silence(self, error: Exception) -> ConnectionError:
        """Why there is no answer, as the system says it."""
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ConnectionError(
                f"{self.url} has a certificate that is not trusted here ({reason.verify_message}): "
                "name the file of its own in the variable SSL_CERT_FILE, or use its http:// address"
            )
        if isinstance(reason, ssl.SSLError) and "WRONG_VERSION" in str(reason):
            return ConnectionError(f"{self.url} does not speak TLS ({reason}): its address may begin with http://")
        if isinstance(reason, TimeoutError):
            return ConnectionError(f"{self.url} did not answer within {TIMEOUT} seconds")
        if isinstance(error, http.client.InvalidURL):
            return ConnectionError(f"{self.url} is no address: {error}")
        return Dropped(f"{self.url} does not answer ({str(reason) or type(reason).__name__}): is the server up?")

    def _without_key(self, text: str) -> str:
        """A text of the server, which may repeat the key."""
        return text.replace(self.key, "(the key)") if self.key else text


def seconds(after: str | None) -> float | None:
    """What a header Retry-After asks for: seconds, or a date."""
    if after is None:
        return None
    if after.strip().isascii() and after.strip().isdigit():
        return float(after)
    try:
        until = email.utils.parsedate_to_datetime(after)
        return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


# -- Reading an answer -------------------------------------------------------------------------------------------------


def places(found: object) -> list[Place]:
    """What an answer says of each token behind the prompt, in the server's own names of tokens.

    In `choices[0].logprobs` there is a list `content` of places, as llama.cpp and OpenAI's chat have it, or the lists
    `tokens`, `token_logprobs` and `top_logprobs` of OpenAI's older form. A token in them is an object with its `id` or
    its `token`, and a `logprob`; or its name is the key, and the log-probability, or such an object, its value.

    Raises:
        NotUnderstood: it does not, or has numbers that are no log-probabilities.
    """
    given = found
    for key in ("choices", 0, "logprobs"):
        if isinstance(given, dict) and given.get("error"):
            raise NotUnderstood("its answer is an error", _short(given["error"]))
        try:
            given = given[key]
        except (KeyError, IndexError, TypeError) as error:
            what = "has no choice in it" if key == 0 else f"has no `{key}`"
            raise NotUnderstood(f"its answer {what}", _short(found)) from error
    if not isinstance(given, dict):
        raise NotUnderstood("its answer has no log-probabilities in `logprobs`", _short(found))
    if isinstance(given.get("content"), list):
        rows = [(row, row, row.get("top_logprobs") if isinstance(row, dict) else None) for row in given["content"]]
    else:
        lists = [given.get(key) for key in ("tokens", "token_logprobs", "top_logprobs")]
        if not all(isinstance(one, list) for one in lists):
            raise NotUnderstood("its `logprobs` have neither `content` nor `tokens` and `top_logprobs`", _short(given))
        if len({len(one) for one in lists}) > 1:
            raise NotUnderstood("`tokens`, `token_logprobs` and `top_logprobs` are not of one length", _short(given))
        rows = [(name, x, top) for name, x, top in zip(*lists, strict=True)]
    if len(rows) > 2 and rows[0][2] is None:
        raise NotUnderstood(
            "the first of its tokens has no log-probabilities (it may repeat the prompt, as with `echo`)"
        )
    read = []
    for name, x, top in rows:
        if not isinstance(top, dict | list):
            raise NotUnderstood("`top_logprobs` are missing for a token of its answer", _short(given))
        items = top.items() if isinstance(top, dict) else ((entry, entry) for entry in top)
        read.append(Place(name_of(name), logarithm(x), [(name_of(key), logarithm(value)) for key, value in items]))
    return read


def name_of(token: object) -> str:
    """The name of a token: as it is, or in an object its number or its text."""
    if isinstance(token, dict):
        token = next((token[key] for key in ("id", "token_id", "token", "text") if token.get(key) is not None), None)
    if isinstance(token, str) or (isinstance(token, int) and not isinstance(token, bool)):
        return str(token)
    raise NotUnderstood("a token of its answer has neither number nor text", _short(token))


def logarithm(x: object) -> float:
    """A log-probability: a number, or a text of one; JSON has no minus infinity, so that is often null."""
    if isinstance(x, dict):
        x = x.get("logprob")
    if x is None:
        return -math.inf
    try:
        value = math.nan if isinstance(x, bool) else float(x)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if math.isnan(value):
        raise NotUnderstood("what should be a log-probability is no number", _short(x))
    if value > 1e-3:
        raise NotUnderstood("a logarithm is above 0 (are these logits, or probabilities?)", str(value))
    return value


def cleaned(likely: Iterable[tuple]) -> list[tuple]:
    """Tokens and their log-probabilities, without those below `FLOOR`.

    Raises:
        NotUnderstood: fewer are left than are needed.
    """
    likely = [*likely]
    kept = [(token, x) for token, x in likely if x >= FLOOR]
    if len(kept) == 1 and len(likely) >= FEWEST and kept[0][1] > -1e-3:
        raise NotUnderstood(
            "one token has all the probability (these look like probabilities after sampling, at temperature 0)"
        )
    if len(kept) < FEWEST:
        kind = f"too few tokens are named (needed are the {FEWEST} likeliest at least)"
        raise NotUnderstood(kind, f"{len(kept)} in {_short(likely)}" if likely else "")
    return kept


def _short(found: object) -> str:
    """The beginning of it, as JSON."""
    return json.dumps(found, default=str)[:200]


# -- Asking ------------------------------------------------------------------------------------------------------------


def ask(
    server: Server, prompt: list[int], likely: int = LIKELY, tell: Callable[[str], None] = lambda text: None
) -> list[Place]:
    """Two tokens behind a prompt; errors as `completion` and `places`. What is not ready is waited for.

    Args:
        server: that is asked.
        prompt: numbers of tokens.
        likely: so many log-probabilities are asked for.
        tell: is called with a sentence when it begins to wait.
    """
    waited, again = 0.0, False
    while True:
        try:
            read = places(server.completion(prompt, max_tokens=2, logprobs=likely))[:2]
            break
        except Dropped:
            if again:
                raise
            again = True
            sleep(PAUSE)
        except NotReady as error:
            pause = max(1.0, min(max(PAUSE, waited), 30.0) if error.after is None else error.after)
            if waited + pause > LONGEST:
                raise
            if not waited:
                tell(f"It answers {error}. It is asked again, for {LONGEST} seconds at most.")
            waited += pause
            sleep(pause)
    if not read:
        raise NotUnderstood("its answer has no tokens")
    return [replace(place, likely=cleaned(place.likely)) for place in read]


def ask_all(server: Server, table: Table) -> tuple[list[Answer | None], list[str]]:
    """What the server says behind each prompt, None where there is nothing; and sentences on what went wrong.

    Raises:
        ConnectionError: it answered nothing at all.
        NotUnderstood: its names of tokens are not understood.
    """
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            tqdm.write(text, file=sys.stderr)
        told.add(text)

    said: list[list[Place] | None] = []
    troubles: dict[tuple[type, str], tuple[Exception, list[int]]] = {}
    sentences, likely, row, last = [], LIKELY, 0, None
    with tqdm(table.prompts, unit=" prompts", leave=False) as prompts:
        for prompt in prompts:
            try:
                try:
                    said.append(ask(server, prompt, likely, tell))
                except Refused as error:
                    if said or error.status not in (400, 422):
                        raise
                    read, sentence = _asked_otherwise(server, prompt, error)
                    sentences.append(sentence)
                    if read is None:
                        break
                    likely = FEWEST
                    said.append(read)
                row = 0
            except ConnectionError as error:
                if not any(said):
                    raise
                sentences.append(f"{error}.")
                break
            except (Refused, NotUnderstood) as error:
                said.append(None)
                kind = (type(error), error.kind)
                troubles.setdefault(kind, (error, []))[1].append(len(prompt))
                row, last = (row + 1 if kind == last else 1), kind
                if row == IN_A_ROW or isinstance(error, NotReady):
                    break
    left = [len(prompt) for prompt in table.prompts[len(said) :]]
    said += [None] * len(left)
    for error, lengths in troubles.values():
        what = "Refused" if isinstance(error, Refused) else "Answered, but not understood"
        sentences.append(f"{what}: {counted(lengths)}. {str(error).rstrip('.')}. {advice(error, server)}".rstrip())
    if left:
        sentences.append(f"Not asked any more: {counted(left)}.")
    answers, unsure = understood(said, table)
    if unsure:
        sentences.append(unsure)
    return answers, sentences


def _asked_otherwise(server: Server, prompt: list[int], error: Refused) -> tuple[list[Place] | None, str]:
    """A first refusal is probed: with fewer log-probabilities, then with a text in place of as many numbers.

    What is answered to fewer, or None; and what was found.
    """
    with suppress(Refused):
        read = ask(server, prompt, FEWEST)
        return read, f"Asked for {LIKELY} log-probabilities it answers {error}. Asked for {FEWEST} it gives them."
    try:
        server.completion("The capital of France is", max_tokens=2, logprobs=FEWEST)
    except (Refused, NotUnderstood):
        raise error from None
    try:
        server.completion(prompt[:5], max_tokens=2, logprobs=FEWEST)
    except Refused:
        pass
    else:
        raise error from None
    return None, (
        f"It takes a text for a prompt, and answers {error} to numbers of tokens. A text may be cut into other tokens, "
        "so none is sent. Use --prompts: it writes the numbers, for a file of your engine's answers to them."
    )


def understood(said: list[list[Place] | None], table: Table) -> tuple[list[Answer | None], str]:
    """The answers with tokens by their numbers; and a sentence if of some it cannot be said which tokens they name."""
    if not any(said):
        return [None] * len(said), ""
    naming = naming_of([one for one in said if one], table.words)
    answers: list[Answer | None] = []
    unsure = []
    for p, one in enumerate(said):
        read = [numbered(place, naming, table.tokens[p, i].tolist()) for i, place in enumerate(one or ())]
        whole = read[: read.index(None)] if None in read else read
        answers.append(whole or None)
        if None in read:
            unsure.append(len(table.prompts[p]))
    if not unsure:
        return answers, ""
    return answers, (
        f"Not compared, or with one of two tokens: {counted(unsure)}. The engine names tokens by {naming.kind}, "
        "and there one name stands for several tokens."
    )


def counted(lengths: list[int]) -> str:
    """So many prompts of these lengths, in words."""
    *some, last = [f"{length:,}" for length in sorted({*lengths})]
    tokens = f"{', '.join(some)} or {last}" if some else last
    return f"{len(lengths)} {'prompt' if len(lengths) == 1 else 'prompts'} of {tokens} tokens"


def advice(error: Refused | NotUnderstood, server: Server) -> str:
    """What may help."""
    if isinstance(error, NotUnderstood):
        if "logprobs" in error.kind or "too few" in error.kind:
            return f"Needed are {FEWEST} log-probabilities or more for each token (vLLM: --max-logprobs {LIKELY})."
        return "Is it the address of an OpenAI-compatible server?" if error.kind == "its answer is no JSON" else ""
    text = error.example.lower()
    if isinstance(error, NotReady):
        return f"It was asked again; waits of more than {LONGEST} seconds in all are not made."
    if error.status in (401, 403):
        if server.key:
            return "A key was sent; it may be that of another server."
        return "No key was sent: --key KEY, or the variable OPENAI_API_KEY, gives one."
    if "context" in text or "too long" in text:
        return "A context of 4,096 takes all prompts (llama.cpp: -c 4096; vLLM: --max-model-len 4096)."
    if error.status in (400, 404, 422) and "model" in text:
        names = server.url.removesuffix("completions") + "models"
        return f"--model NAME gives it a name of the model; {names} may list those that it knows."
    if 300 <= error.status < 400:
        return "Give that address, if you trust it."
    return "Is it the address of an OpenAI-compatible server?" if error.status in (404, 405) else ""


# -- Reading a file ----------------------------------------------------------------------------------------------------


def from_file(path: Path, table: Table) -> list[Answer | None]:
    """Answers from a file.

    Raises:
        ValueError: they are not in the form that the head of this module describes.
    """
    form = f"needed is a list of {len(table.prompts)} entries (python -m lab.doctor --help says their form)"
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}; {form}") from error
    if not isinstance(found, list):
        raise ValueError(f"{path} holds no list; {form}")
    if found == table.prompts:
        raise ValueError(f"{path} holds the prompts themselves; needed are the answers of your engine to them")
    if len(found) != len(table.prompts):
        raise ValueError(f"{path} has {len(found)} {'entry' if len(found) == 1 else 'entries'}; {form}")
    answers: list[Answer | None] = []
    for number, entry in enumerate(found):
        try:
            answers.append(None if entry is None else _entry(entry))
        except NotUnderstood as error:
            raise ValueError(f"{path}, entry {number}: {error}") from error
    return answers


def _entry(entry: object) -> Answer:
    """An entry of a file."""
    if entry == []:
        raise NotUnderstood("it has no tokens; where there is no answer, write null")
    try:
        answer = [{int(token): logarithm(x) for token, x in place.items()} for place in entry]
    except (ValueError, AttributeError, TypeError) as error:
        raise NotUnderstood(
            f'{_short(entry)[:60]} is neither null nor a list of objects {{"number of a token": log-probability, ...}}'
        ) from error
    return [dict(cleaned(place.items())) for place in answer]
