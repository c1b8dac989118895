"""Names that Python can spell, and suggestions for those misspelt."""

__all__ = ["aliases", "close_matches", "did_you_mean", "listing"]

import re
from collections.abc import Iterable
from keyword import iskeyword

# `__debug__` is no keyword, yet `f(__debug__=1)` is a syntax error.
_UNSPELLABLE = frozenset({"__debug__"})

# Suggestions are for readers: names past this length are compared by their start.
_COMPARED = 100


def aliases(names: Iterable[str], fallback: str) -> dict[str, str]:
    """Return an identifier for each name, the same whatever their order.

    A name that is an identifier keeps it. The others that meet take, in the
    order of their bytes, the first free of ``x``, ``x_2``, ``x_3``, …

        >>> aliases(["from", "cik-A", "cik_A"], "argument")
        {'cik_A': 'cik_A', 'cik-A': 'cik_A_2', 'from': 'from_'}
    """
    unique = sorted(set(names))
    result = {name: name for name in unique if _spellable(name)}
    taken = set(result)
    for name in unique:
        if name in result:
            continue
        base = alias = _identifier(name, fallback)
        number = 2
        while alias in taken:
            alias = f"{base}_{number}"
            number += 1
        result[name] = alias
        taken.add(alias)
    return result


def _spellable(name: str) -> bool:
    if not name.isidentifier() or iskeyword(name) or name in _UNSPELLABLE:
        return False
    if name.isascii():
        return True
    # The compiler folds identifiers to NFKC: another form could not be typed.
    import unicodedata

    return unicodedata.normalize("NFKC", name) == name


def _identifier(name: str, fallback: str) -> str:
    alias = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not alias.strip("_"):
        return fallback
    if alias[0].isdigit():
        alias = f"_{alias}"
    if iskeyword(alias) or alias in _UNSPELLABLE:
        alias = f"{alias}_"
    return alias


def close_matches(word: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Return at most `count` of `names` that `word` may have meant, best first."""
    from difflib import SequenceMatcher

    wanted = _folded(word)
    scored = []
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for name in dict.fromkeys(names):
        candidate = _folded(name)
        matcher.set_seq1(candidate)
        if wanted and (wanted in candidate or candidate and candidate in wanted):
            score = 0.7 + 0.3 * matcher.real_quick_ratio()
        elif matcher.real_quick_ratio() < 0.6 or matcher.quick_ratio() < 0.6:
            continue
        else:
            score = matcher.ratio()
        if score >= 0.6:
            scored.append((-score, name))
    return [name for _, name in sorted(scored)[:count]]


def _folded(name: str) -> str:
    return re.sub(r"[\W_]", "", name[:_COMPARED]).lower()


def did_you_mean(word: str, names: Iterable[str], *, what: str) -> str:
    """Return a sentence that goes on from "no such name" among `what`.

        >>> did_you_mean("raed", ["read", "write"], what="Tools")
        "Did you mean 'read'?"
    """
    known = list(names)
    if not known:
        return f"There are no {what.lower()}."
    matches = close_matches(word, known)
    if matches:
        return f"Did you mean {' or '.join(map(repr, matches))}?"
    return f"{what}: {listing(known)}"


def listing(names: Iterable[str], limit: int = 20) -> str:
    """Return `names` separated by commas, cut after `limit` of them.

        >>> listing(["a", "b", "c"], 2)
        'a, b, … (3 in all)'
    """
    known = list(names)
    text = ", ".join(known[:limit])
    return text if len(known) <= limit else f"{text}, … ({len(known)} in all)"
