"""The order in which kiln trains on examples (src/data/example_batches.c): a Feistel network over Philox 4x32 with 7 rounds
(src/core/rng.h)."""

ORDER_PURPOSE, M64 = 0x73717561, (1 << 64) - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def key_of(seed, purpose):
    return mix(mix(seed) ^ purpose)


def philox_word(key, counter):
    k = [key & 0xFFFFFFFF, key >> 32]
    c = list(counter)
    for _ in range(7):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def permuted(key, n, index):
    half = 1
    while (n - 1) >> (2 * half):
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for turn in range(4):
            left, right = right, left ^ (philox_word(key, (right, turn, 0, 1)) & mask)
        index = left << half | right
        if index < n:
            return index


def epoch_order(seed, epoch, n):
    """Which of n examples come first, second and so on in an epoch, counted from 0."""
    key = key_of(key_of(seed, ORDER_PURPOSE), epoch)
    return [permuted(key, n, i) for i in range(n)]
