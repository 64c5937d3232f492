"""The one kind of failure that a person is meant to read."""


class UnskewError(Exception):
    """One sentence: what is wrong, where, and what to do. The command line prints it and exits with 2."""


def nearest(name: str, known) -> str:
    """A hint to append to "unknown NAME": the closest known names, or all of them when none is close."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(sorted(known))}."
