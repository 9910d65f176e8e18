"""Evidence from shared items (docs/theory.md, section 39), item by item, as plain loops over numbers."""

from collections.abc import Sequence

from shortlist.arrays import FloatArray

BETS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99)


def mixture(ratios: Sequence[float]) -> list[float]:
    """Return the mean over bets f of the products of 1 - f + f ratio, after each ratio."""
    products, found = [1.0] * len(BETS), []
    for ratio in ratios:
        products = [old * (1 - bet + bet * ratio) for old, bet in zip(products, BETS, strict=True)]
        found.append(sum(products) / len(BETS))
    return found


def paired(incumbent: FloatArray, outsider: FloatArray, n_items: int, excess: float) -> list[float]:
    """Return the evidence, after each item, that the outsider's total is not `excess` more than the other."""
    ratios = []
    for place, (own, other) in enumerate(zip(incumbent, outsider, strict=True)):
        lead = sum(incumbent[:place]) - sum(outsider[:place])
        mean = (-excess - lead) / (n_items - place)  # of the differences to come, at most
        ratios.append((1 + own - other) / (1 + mean) if 1 + mean > 1e-9 else 1.0)
    return mixture(ratios)


def single(scores: FloatArray, n_items: int, total: float, predictions: Sequence[FloatArray]) -> list[float]:
    """Return the evidence, after each item, that the sum over all items is not `total`.

    ``predictions[j]`` has predictions for the items from place j on, made before the item at place j is seen.
    """
    ratios = []
    for place, score in enumerate(scores):
        left = list(predictions[place])
        assert len(left) == n_items - place
        mean = sum(left) / len(left)
        reach = mean - min(left)
        rest = (total - sum(scores[:place])) / len(left)
        expected = 1 - rest + reach
        ratios.append((1 - score + reach - (mean - left[0])) / expected if expected > 1e-9 else 1.0)
    return mixture(ratios)
