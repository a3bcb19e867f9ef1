"""The alphabet in which GPT-2's vocabulary, and that of many models since, spells bytes."""

# Those that print stand for themselves, the others for later signs: a space is Ġ, the end of a line Ċ.
_PRINT = (*range(33, 127), *range(161, 173), *range(174, 256))
_OTHERS = (byte for byte in range(256) if byte not in _PRINT)
BYTES = {chr(byte): byte for byte in _PRINT} | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}


def text_of(pieces: str) -> str:
    """What pieces of the vocabulary spell; bytes that are no whole letter become U+FFFD."""
    return bytes(BYTES[letter] for letter in pieces).decode(errors="replace")
