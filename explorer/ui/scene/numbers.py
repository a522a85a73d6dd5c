"""Running numbers, written so that they do not jump as they run."""


def out_of(done: float, whole: str, unit: str) -> str:
    """``4.2 / 12.4 GB``: the running number with as many decimals as the whole.

    Args:
        done: In ``unit``.
        whole: The final number as it is written.
        unit: Of both.
    """
    decimals = len(whole.partition(".")[2])
    return f"{done:,.{decimals}f} / {whole} {unit}"
