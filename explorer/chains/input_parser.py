"""Reads the text of one's own code's arguments; ``input_text`` says what it may hold."""

import math
import re

from explorer.chains.descriptor import NUMBER
from explorer.chains.input_text import (
    DTYPE_SYMBOL,
    DTYPES,
    ESCAPES,
    INTEGER_DTYPES,
    LARGEST_SIZE,
    WORDS,
    Argument,
    DtypeText,
    InputText,
    ListText,
    Size,
    Symbol,
    TensorText,
    Value,
)
from explorer.model.errors import UsageError

DEEPEST = 16
"""Levels of tuples and lists in each other: more is a slip, and would end Python's own stack."""
LARGEST_INTEGER = 2**63 - 1
SHOWN = 12
"""Characters of the text that a sentence repeats."""
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(NUMBER)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_RESERVED = {*WORDS, *DTYPES, DTYPE_SYMBOL}
_VALUE = (
    "a value, such as bf16[rows=1024,4096], i64[128]<32000, 0.5, True, None, 'text' or (..., ...)"
)


def parse(source: str, what: str, *, tensors: bool = True) -> InputText:
    """Read a text.

    Args:
        source: Such as ``x=bf16[16384,4096] causal=True``.
        what: Names the text in a sentence: ``--input``.
        tensors: Whether tensors may stand in it; not so in a constructor's arguments.

    Raises:
        UsageError: It cannot be read; the sentence says where, and what is expected there.
    """
    return _Reader(source, what, tensors=tensors).read()


class _Reader:
    def __init__(self, source: str, what: str, *, tensors: bool) -> None:
        self._source = source
        self._what = what
        self._tensors = tensors
        self._at = 0
        self._depth = 0

    def read(self) -> InputText:
        arguments: list[Argument] = []
        self._skip_spaces()
        while self._at < len(self._source):
            start = self._at
            argument = self._argument()
            if any(argument.name == other.name for other in arguments):
                raise self._error(f"{argument.name} stands there already; leave one out", start)
            arguments.append(argument)
            end = self._at
            self._skip_spaces()
            apart = self._take(",") or self._at > end
            self._skip_spaces()
            if not apart and self._at < len(self._source):
                raise self._error("expected a space before the next argument")
        return InputText(tuple(arguments))

    def _argument(self) -> Argument:
        name = self._name()
        if name is None:
            raise self._error("expected an argument, such as x=bf16[1024,4096]")
        self._skip_spaces()
        if not self._take("="):
            raise self._error(f"expected = and a value after {name}")
        self._skip_spaces()
        return Argument(name, self._value())

    def _value(self) -> Value:
        start = self._at
        following = self._source[start : start + 1]
        if following in ("'", '"') and following:
            return self._quoted()
        if following in ("(", "[") and following:
            return self._items(following)
        word = self._name()
        if word is not None:
            return self._word(word, start)
        if (found := _NUMBER.match(self._source, start)) is None:
            raise self._error(f"expected {_VALUE}")
        self._at = found.end()
        return self._number(found[0], start)

    def _word(self, word: str, start: int) -> Value:
        """What begins with a word: a tensor, a dtype, None, True, False or a symbol."""
        if self._source.startswith("[", self._at):
            return self._tensor(word, start)
        if word in WORDS:
            return WORDS[word]
        if word in _RESERVED:
            return DtypeText(None if word == DTYPE_SYMBOL else word)
        return self._symbol(word, start)

    def _tensor(self, dtype: str, start: int) -> TensorText:
        if dtype not in (*DTYPES, DTYPE_SYMBOL):
            known = ", ".join(DTYPES)
            raise self._error(f"{dtype} is no dtype; it takes {known} or {DTYPE_SYMBOL}", start)
        if not self._tensors:
            raise self._error("a constructor's argument cannot be a tensor", start)
        self._at += 1
        shape: list[Size] = []
        while not self._closes("]", is_first=not shape):
            shape.append(self._size("a size"))
        below = self._below(dtype)
        return TensorText(None if dtype == DTYPE_SYMBOL else dtype, tuple(shape), below)

    def _below(self, dtype: str) -> Size | None:
        start = self._at
        if not self._take("<"):
            return None
        if dtype not in INTEGER_DTYPES:
            known = " and ".join(INTEGER_DTYPES)
            raise self._error(f"an upper bound is for whole numbers, {known}, not {dtype}", start)
        return self._size("an upper bound")

    def _size(self, word: str) -> Size:
        start = self._at
        name = self._name()
        if name is not None:
            return self._symbol(name, start)
        found = _INTEGER.match(self._source, start)
        if found is None:
            raise self._error(f"expected {word}, such as 4096 or rows=1024")
        self._at = found.end()
        return self._checked_size(found[0], word, start)

    def _symbol(self, name: str, start: int) -> Symbol:
        if name in _RESERVED:
            raise self._error(f"{name} is a word of its own and cannot name a size", start)
        if not self._take("="):
            return Symbol(name)
        at = self._at
        found = _INTEGER.match(self._source, at)
        if found is None:
            raise self._error(f"expected a whole number, the default of {name}")
        self._at = found.end()
        return Symbol(name, self._checked_size(found[0], f"the default of {name}", at))

    def _checked_size(self, digits: str, word: str, start: int) -> int:
        # Python refuses to read thousands of digits with an error of its own.
        size = int(digits) if len(digits) <= len(str(LARGEST_SIZE)) + 1 else LARGEST_SIZE + 1
        if not 1 <= size <= LARGEST_SIZE:
            raise self._error(f"{word} is from 1 to {LARGEST_SIZE:,}", start)
        return size

    def _number(self, written: str, start: int) -> int | float:
        if _INTEGER.fullmatch(written):
            fits = len(written) <= len(str(LARGEST_INTEGER)) + 1
            if not fits or abs(int(written)) > LARGEST_INTEGER:
                raise self._error("a whole number is at most 9223372036854775807", start)
            return int(written)
        number = float(written)
        if not math.isfinite(number):
            raise self._error("the number is too large for 64 bits", start)
        return number

    def _quoted(self) -> str:
        start = self._at
        quote = self._source[start]
        self._at += 1
        content: list[str] = []
        while not self._take(quote):
            if self._at >= len(self._source):
                raise self._error(f"the text has no closing {quote}", start)
            if self._take("\\"):
                mark = self._source[self._at : self._at + 1]
                if mark not in ESCAPES:
                    raise self._error(
                        "a backslash is written twice, or stands before a quote, n, t or r",
                        self._at - 1,
                    )
                content.append(ESCAPES[mark])
            else:
                content.append(self._source[self._at])
            self._at += 1
        return "".join(content)

    def _items(self, opening: str) -> Value:
        """A tuple or a list; ``(x)`` is x, as in Python."""
        start = self._at
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"at most {DEEPEST} tuples and lists stand in each other", start)
        self._at += 1
        closing = ")" if opening == "(" else "]"
        items: list[Value] = []
        while not self._closes(closing, is_first=not items):
            items.append(self._value())
        self._depth -= 1
        if opening == "[":
            return ListText(tuple(items))
        is_tuple = len(items) != 1 or self._source[start : self._at - 1].rstrip().endswith(",")
        return tuple(items) if is_tuple else items[0]

    def _closes(self, closing: str, *, is_first: bool) -> bool:
        """Step over what follows an item: the end, or a comma before the next."""
        self._skip_spaces()
        if self._take(closing):
            return True
        if is_first:
            return False
        if not self._take(","):
            raise self._error(f"expected , or {closing}")
        self._skip_spaces()
        return self._take(closing)

    def _name(self) -> str | None:
        found = _NAME.match(self._source, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _take(self, mark: str) -> bool:
        if not self._source.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _skip_spaces(self) -> None:
        while self._source[self._at : self._at + 1].isspace():
            self._at += 1

    def _error(self, complaint: str, at: int | None = None) -> UsageError:
        at = self._at if at is None else at
        rest = self._source[at:]
        shown = rest if len(rest) <= SHOWN else f"{rest[:SHOWN]}…"
        place = f"at {shown!r}, character {at + 1}" if rest else "at its end"
        return UsageError(f"{self._what} cannot be read {place}: {complaint}.")
