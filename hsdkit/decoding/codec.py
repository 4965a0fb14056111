"""Text to ids and back, byte exact, over a `transformers` fast tokenizer.

`decode` of a tokenizer is made for whole texts: it guesses at spaces and replaces half characters. The decoding loop
needs the opposite, the exact bytes of one token, so that drafts and output can be compared at any position.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

from hsdkit.decoding.protocol import Codec
from hsdkit.errors import TargetError


class TokenizerCodec:
    """`Codec` over a fast tokenizer: byte-level BPE, or SentencePiece style with byte fallback and `▁` for a space.

    The bytes of `encode(text)`, joined, are the UTF-8 of the text as the tokenizer normalises it (for most models: of
    the text). Text that spells a special token is encoded as ordinary text, so a draft can never hold an end token;
    except `written` ones, the tags of a model's output language: they are text that is encoded as the one token it is.
    A SentencePiece tokenizer that puts a space before a text does not do so here: drafts are continued, not begun.

    Raises `TargetError` for a tokenizer whose tokens have no exact bytes (WordPiece and the like).
    """

    def __init__(self, tokenizer: Any, written: Iterable[str] = ()) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise TargetError(
                f"{type(tokenizer).__name__} is not a fast tokenizer; hsdkit needs one with tokenizer.json"
            )
        self._byte_level = _is_byte_level(backend)
        self._backend = _copy(backend, prefix_space=self._byte_level)
        added = backend.get_added_tokens_decoder()
        tags = {entry.content: token for token, entry in added.items() if entry.content in set(written)}
        self._tags = tags
        self._tag = (
            re.compile("(" + "|".join(map(re.escape, sorted(tags, key=len, reverse=True))) + ")") if tags else None
        )
        special = {token for token, entry in added.items() if entry.special} | set(tokenizer.all_special_ids)
        special -= set(tags.values())
        self._bytes: dict[int, bytes] = {
            token: b"" if token in special else entry.content.encode() for token, entry in added.items()
        }
        self._bytes.update((token, b"") for token in special)

    def encode(self, text: str) -> list[int]:
        """Ids of the text, with no special tokens but the written ones."""
        if self._tag is None:
            return self._encode(text)
        parts = self._tag.split(text)
        ids: list[int] = []
        for plain, tag in zip(parts[::2], [*parts[1::2], ""], strict=True):
            ids += self._encode(plain) if plain else ()
            ids += [self._tags[tag]] if tag else ()
        return ids

    def _encode(self, text: str) -> list[int]:
        whole = text.encode("utf-8", "replace").decode()
        ids: list[int] = self._backend.encode(whole, add_special_tokens=False).ids
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of a token; nothing for special tokens and for ids that the tokenizer does not know."""
        data = self._bytes.get(token)
        if data is None:
            piece = self._backend.id_to_token(token) if token >= 0 else None
            data = b"" if piece is None else _byte_level_bytes(piece) if self._byte_level else _spm_bytes(piece)
            self._bytes[token] = data
        return data

    def text(self, tokens: Iterable[int]) -> str:
        """The text of the tokens; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")


class TextStream:
    """Text of tokens as they arrive, whole characters only: one that several tokens share comes with the last of them.
    `flush` gives what an unfinished character left behind."""

    def __init__(self, codec: Codec) -> None:
        self._token_bytes = codec.token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, tokens: Iterable[int]) -> str:
        return self._decoder.decode(b"".join(map(self._token_bytes, tokens)))

    def flush(self) -> str:
        text = self._decoder.decode(b"", True)
        self._decoder.reset()
        return text


def _is_byte_level(backend: Any) -> bool:
    """Which family: read off the decoder, which is what undoes the encoding."""
    kinds = _kinds(json.loads(backend.decoder.__getstate__())) if backend.decoder is not None else set()
    if "ByteLevel" in kinds:
        return True
    if kinds & {"ByteFallback", "Metaspace", "Replace"}:
        return False
    raise TargetError(
        f"tokenizer decoder {sorted(kinds) or 'missing'}: hsdkit needs tokens with exact bytes, "
        "as byte-level BPE and SentencePiece have"
    )


def _kinds(node: Any) -> set[str]:
    """Every `type` in a serialised tokenizer part."""
    if isinstance(node, dict):
        found = {node["type"]} if isinstance(node.get("type"), str) else set()
        return found.union(*map(_kinds, node.values()))
    if isinstance(node, list):
        return set().union(*map(_kinds, node))
    return set()


def _copy(backend: Any, prefix_space: bool) -> Any:
    """Our own, that encodes any text as ordinary text and all of it, and adds no space at its start unless
    `prefix_space` leaves that to the tokenizer. Calls of the target's change how theirs works, and in another thread
    that fails while this one encodes."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
    if not prefix_space:
        for part in ("normalizer", "pre_tokenizer"):
            state[part] = _drop_prefix(state[part])
    copy = Tokenizer.from_str(json.dumps(state))
    copy.encode_special_tokens = True
    return copy


def _drop_prefix(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node["type"] == "Prepend":
        return None
    if node["type"] == "Metaspace":
        return node | {"prepend_scheme": "never"}
    for children in ("normalizers", "pretokenizers"):
        if children in node:
            kept = [child for child in map(_drop_prefix, node[children]) if child is not None]
            return node | {children: kept}
    return node


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins for bytes: printable Latin-1 stands for itself, the rest moves to U+0100 and on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def _byte_level_bytes(piece: str) -> bytes:
    try:
        return bytes(map(_BYTE_OF.__getitem__, piece))
    except KeyError:  # a token added to the vocabulary as plain text
        return piece.encode()


def _spm_bytes(piece: str) -> bytes:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return bytes((int(piece[3:5], 16),))
        except ValueError:
            pass
    return piece.replace("▁", " ").encode()
