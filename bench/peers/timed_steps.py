"""The rate of a peer's training step, for the programs beside this file."""
import statistics
import time

WARM_UP, SECONDS, MOST = 2, 5.0, 60


def rate(step, n_tokens):
    """Tokens per second of step(), which trains on n_tokens: the median of the steps behind the warm-up."""
    for _ in range(WARM_UP):
        step()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < MOST and (len(times) < 3 or time.perf_counter() < end):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return n_tokens / statistics.median(times)
