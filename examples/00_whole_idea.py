"""The whole idea in plain Python: find the 2 best of 8 noisy arms, to within 0.5, with a guarantee.

Run it:  python examples/00_whole_idea.py [seed]

Shortlist does the same with sharper bounds. It adds unequal noise, workers, and a log of all events.
"""

import math
import random
import sys


def half_width(pulls, round_number, n, delta, scale):
    """Return how far the mean of `pulls` rewards may be off, to either side.

    Independent rewards with this scale satisfy P(mean off by w or more) <= 2 exp(-pulls w^2 / (2 scale^2)).
    The interval of one arm in round r may fail with probability delta / (n r (r + 1)). Because 1/2 + 1/6 +
    1/12 + ... = 1, all intervals of all arms in all rounds hold together with probability 1 - delta or more.
    """
    share = delta / (n * round_number * (round_number + 1))
    return scale * math.sqrt(2 * math.log(2 / share) / pulls)


def select(pull, n, m, epsilon, delta, scale, batch=25):
    """Return m arms, and the number of pulls that it took to find them.

    With probability 1 - delta or more, none of these m is more than epsilon worse than the true m-th best.
    """
    pulls, sums = [0] * n, [0.0] * n
    low, high = [-math.inf] * n, [math.inf] * n
    to_pull = range(n)
    round_number = 0
    while True:
        # Pull in batches of a fixed size: stopping early because the means look good would bias them.
        round_number += 1
        for arm in to_pull:
            sums[arm] += sum(pull(arm) for _ in range(batch))
            pulls[arm] += batch
            mean, width = sums[arm] / pulls[arm], half_width(pulls[arm], round_number, n, delta, scale)
            low[arm], high[arm] = mean - width, mean + width

        # The m arms that look best are inside. Suppose that all intervals hold, and an arm inside is more
        # than epsilon worse than the m-th best. Then one of the m best is outside, and beats it by more than
        # epsilon. So the answer is right once no arm outside can beat an arm inside by more than epsilon.
        ranked = sorted(range(n), key=lambda arm: -sums[arm] / pulls[arm])
        inside, outside = ranked[:m], ranked[m:]
        weakest, strongest = min(low[arm] for arm in inside), max(high[arm] for arm in outside)
        if strongest - weakest <= epsilon:
            return sorted(inside), sum(pulls)

        # Continue with the arms that prevent stopping; the others have been pulled enough.
        to_pull = [arm for arm in inside if low[arm] < strongest - epsilon]
        to_pull += [arm for arm in outside if high[arm] > weakest + epsilon]


if __name__ == "__main__":
    noise = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    means = [0.0, 0.3, 1.0, 2.1, 0.5, 1.9, 1.2, -0.4]  # unknown in practice
    arms, n_pulls = select(lambda arm: noise.gauss(means[arm], 1), n=8, m=2, epsilon=0.5, delta=0.05, scale=1)
    print(f"Arms {arms}, each within 0.5 of the second best with probability 95 %; {n_pulls:,} pulls.")
