"""Progress as tqdm shows it; without tqdm a line on standard error, rewritten as work goes on."""
import sys
import time


class Line:
    """The few methods of tqdm that kiln calls."""

    def __init__(self, total=None, desc="", disable=False):
        self.total, self.desc, self.n, self.text, self.shown = total, desc, 0, "", 0.0
        self.disable = disable or not sys.stderr.isatty()

    def update(self, n=1):
        self.n += n
        if not self.disable and (time.monotonic() - self.shown > 0.1 or self.n == self.total):
            self.shown = time.monotonic()
            share = f"{100 * self.n // self.total:3d} %" if self.total else ""
            sys.stderr.write(f"\r{self.desc}: {share} {self.n}/{self.total or '?'} {self.text}\x1b[K")
            sys.stderr.flush()

    def set_postfix_str(self, text):
        self.text = text

    def close(self):
        if not self.disable and self.n:
            sys.stderr.write("\n")


def progress(total, desc, show):
    """A bar of tqdm's, if it is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = Line
    return tqdm(total=total, desc=desc, disable=not show)


FEW = 4


def batches(items, size, desc, show):
    """Parts of a list: one if nobody watches, since kiln batches by itself; else of a few batches of
    `size`, which the bar counts: those of 32 short texts alone are too small for kiln's products."""
    if not show:
        yield items
        return
    bar = progress(-(-len(items) // size), desc, True)
    try:
        for at in range(0, len(items), FEW * size):
            part = items[at:at + FEW * size]
            yield part
            bar.update(-(-len(part) // size))
    finally:
        bar.close()
