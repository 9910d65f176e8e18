"""The problem: the m best of n arms, to within epsilon, with probability 1 - delta."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from shortlist import checks
from shortlist.arrays import FloatArray, IntArray, blocks
from shortlist.errors import InvalidProblem
from shortlist.items import Blocks, Items, Known, is_on_step
from shortlist.rewards import (
    BOUNDED,
    UNKNOWN,
    Bernoulli,
    Bounded,
    Gaussian,
    Rewards,
    SubGaussian,
    ZeroOne,
    rewards_of,
)

MOST_EPSILONS = 2.0**45
"""The largest mean, in units of epsilon: double precision then leaves eight bits below epsilon."""

MOST_PULLS = 2**53
"""Beyond this a pull count is no longer exact in double precision."""

MOST_CELLS = 100_000_000
"""The largest table of scores: a run keeps up to two numbers of eight bytes for each while it decides."""

_PARTS = ("m", "epsilon", "delta", "n", "rewards", "names", "guarantee", "goal", "bounds", "costs")
_ITEM_PARTS = ("items", "known", "target")  # only with shared items


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """The question to be answered; validated once and immutable.

    Parameters
    ----------
    m
        How many arms to select, from 1 to n. With m = n the answer needs no pulls.
    epsilon
        How far below the true m-th best mean a selected arm may lie, in the units of the rewards.
    delta
        The accepted failure probability, strictly between 0 and 1.
    variances
        One variance proxy per arm; shorthand for ``rewards=SubGaussian(variances)``.
    names
        One distinct name per arm; by default ``arm-0``, ``arm-1`` and so on.
    n
        The number of arms, if neither variances nor names determine it.
    rewards
        What is known of the rewards: ``Bernoulli()`` if every reward is 0 or 1; ``Bounded(low, high)`` if it
        lies between two numbers; ``SubGaussian(variances)``; ``Gaussian(variances)``; or ``Gaussian()`` if
        the variances are unknown. "bernoulli", together with `variances`, declares that every reward is 0 or
        1 and sets the bounds to (0, 1), but uses these variances.
    guarantee
        The required guarantee: "pac", that no selected arm lies more than epsilon below the m-th best; or the
        weaker "indifference", that the m best are selected if they lie at least epsilon above all others.
    goal
        "maximise" if large means are good, or "minimise" if small means are. With "minimise", read "above" as
        "below", and conversely, in all descriptions.
    bounds
        ``(low, high)`` if every reward is known to lie between these two numbers. Bounds are part of the
        problem: they are stored with a run, and results outside them are refused. They do not change the
        variance proxies.
    costs
        The cost of a pull of each arm, in any unit; 1 unless given. Budgets, plans, lower bounds and the race
        then count cost, not pulls.
    items
        The items that all arms are measured on: their number, a list of them, or a dictionary from ids to
        items; items are values that can be written as JSON. The question is then about means over these
        items, and a pull is the score of an arm on one item. Rewards must have bounds, and epsilon may be 0.
        ``Blocks()`` if arms are measured in endless blocks, in which they share random numbers or other
        conditions; rewards must then be ``Gaussian()`` or have bounds.
    known
        With items: complete rows of scores that exist already, by arm, in the order of `items`.
    target
        With items: "pool", or "population" if the question is about means over the population that the items
        were drawn from.
    noise
        Deprecated: "gaussian" together with `variances` means ``rewards=Gaussian(variances)``.

    Examples
    --------
    >>> p = Problem(m=1, epsilon=0.1, delta=0.05, variances=[1.0, 4.0], names=["old", "new"])
    >>> p.n, p.name(1)
    (2, 'new')

    With unknown variances:

    >>> Problem(m=1, epsilon=0.5, delta=0.05, names=["old", "new"], rewards=Gaussian())
    Problem(m=1, epsilon=0.5, delta=0.05, n=2, rewards=Gaussian())

    Source
    ------
    [ZT22] Section 3.
    """

    m: int
    epsilon: float
    delta: float
    n: int
    rewards: Rewards
    names: tuple[str, ...] | None
    guarantee: str
    goal: str
    bounds: tuple[float, float] | None
    costs: FloatArray | None
    items: Items | None
    known: Known | None
    target: str

    def __init__(
        self,
        m: int,
        epsilon: float,
        delta: float,
        variances: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        rewards: Rewards | Literal["bernoulli"] | None = None,
        guarantee: str = "pac",
        goal: str = "maximise",
        bounds: Sequence[float] | None = None,
        costs: ArrayLike | None = None,
        items: Any = None,
        known: Any = None,
        target: str = "pool",
        noise: str | None = None,
    ) -> None:
        if noise is not None:
            rewards, variances = _rewards_of_noise(noise, variances, rewards), None
        rewards = _checked_rewards(variances, rewards)
        n = _number_of_arms(n, names, rewards)
        shared = None if items is None else Items.of(items)
        values = {
            "n": n,
            "m": checks.m(m, n),
            "epsilon": checks.epsilon(epsilon, may_be_zero=shared is not None),
            "delta": checks.delta(delta),
            "rewards": rewards,
            "names": None if names is None else checks.names(names, n),
            "guarantee": checks.one_of(guarantee, "guarantee", ("pac", "indifference")),
            "goal": checks.one_of(goal, "goal", ("maximise", "minimise")),
            "bounds": _checked_bounds(bounds, rewards),
            "costs": None if costs is None else checks.costs(costs, n),
            "items": shared,
            "known": None,
            "target": checks.one_of(target, "target", ("pool", "population")),
        }
        if isinstance(shared, Blocks):
            values["target"] = "population"
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if isinstance(rewards, Gaussian) and self.bounds is not None:
            raise InvalidProblem(
                "`rewards` is Gaussian, but rewards that lie within `bounds` are not Gaussian; use other "
                "`rewards`, or leave out `bounds`."
            )
        if shared is not None or known is not None or target != "pool":
            _check_items(self)
            if self.has_blocks and known is not None:
                raise InvalidProblem(
                    "`known` needs a fixed set of items, and blocks have none; leave `known` out."
                )
            object.__setattr__(self, "known", None if known is None else _known(self, known))
        elif self.knows_variances:
            _refuse_endless(self)

    @property
    def n_items(self) -> int:
        """The number of shared items; 0 if there are none."""
        return 0 if self.items is None else self.items.n

    @property
    def has_blocks(self) -> bool:
        """Whether all arms are measured in endless blocks."""
        return isinstance(self.items, Blocks)

    @property
    def has_pool(self) -> bool:
        """Whether all arms are measured on a fixed set of items."""
        return self.items is not None and not self.has_blocks

    @property
    def is_lockstep(self) -> bool:
        """Whether all arms that have not stopped are measured in one block after the other."""
        return isinstance(self.items, Blocks) and self.items.lockstep

    @cached_property
    def cells(self) -> IntArray:
        """For each arm, how many scores on shared items are not known already."""
        counts = np.full(self.n, self.n_items)
        if self.known is not None:
            counts[self.known.arms] = 0
        return counts

    @property
    def n_cells(self) -> int:
        """The number of scores on shared items that are not known already."""
        return int(self.cells.sum())

    @property
    def step(self) -> float | None:
        """What rewards are multiples of, above the lower bound; None if that is not known."""
        return self.rewards.step if isinstance(self.rewards, Bounded) else None

    @property
    def has_own_step(self) -> bool:
        """Whether a step of rewards was declared, other than that of 0/1 rewards."""
        return self.step is not None and not self.is_binary

    def order(self, seed: int = 0) -> IntArray:
        """Return the order in which all arms of a run of this question take the items, by their places.

        It is random, and fixed by the question and the seed: another question, about fewer or other arms or
        with another epsilon, has another order. So scores that were seen in one order cannot have chosen
        which arms the next order favours. It is the same in whatever order named arms are listed. A run that
        goes on with a smaller epsilon keeps its order, which is that of the epsilon asked first.
        """
        if self.items is None or self.has_blocks:
            raise InvalidProblem("only a fixed set of items has an order; this problem has none.")
        return self.items.order_by(self.entropy(checks.whole_number(seed, "seed", 0)))

    def entropy(self, seed: int) -> int:
        """Return what all random numbers of a run derive from: a digest of the question and the seed."""
        digest = hashlib.sha256(self._question + f"\0{seed}".encode()).digest()
        return int.from_bytes(digest[:16], "big")

    @cached_property
    def _question(self) -> bytes:
        """A digest of the question that is the same for every order of its arms.

        The goal is left out, so that minimising x is maximising -x, reward for reward. That is safe: a run
        cannot make anybody choose among many questions that differ in their goal alone.
        """
        ranks = self.arms if self.ranks is None else self.ranks
        by_rank = np.argsort(ranks)
        words = (
            *(self.n, self.m, self.epsilon, self.delta, self.noise, self.guarantee, self.bounds),
            *(self.declared_rewards, self.step, self.pilot, self.target, self.items and self.items.digest),
            self.names and [self.names[arm] for arm in by_rank.tolist()],
        )
        whole = hashlib.sha256(json.dumps(words).encode())
        own = self._own_limits
        of_arms = [self._given_variances, self.costs, *((None, None) if own is None else own)]
        for values in of_arms:
            whole.update(b"\0" if values is None else values[by_rank].astype("<f8").tobytes())
        if self.known is not None:
            known = ranks[self.known.arms]
            rows = np.argsort(known)
            whole.update(Known(known[rows], self.known.scores[rows]).digest.encode())
        return whole.digest()

    @cached_property
    def ranks(self) -> IntArray | None:
        """The place of each arm among the sorted names; None if arms have no names.

        The random numbers of an arm derive from its rank, or its number if it has none. So they are the same
        in whatever order named arms are listed.
        """
        if self.names is None:
            return None
        ranks = np.empty(self.n, dtype=np.int64)
        ranks[sorted(range(self.n), key=self.names.__getitem__)] = np.arange(self.n)
        return ranks

    def in_order(self, entropy: int) -> Problem:
        """Return the problem with its known scores in the order in which a run takes the items."""
        if self.items is None or self.known is None:
            return self
        return self.changed(known=self.known.in_order(self.items.order_by(entropy)))

    @property
    def knows_variances(self) -> bool:
        """Whether the variances of the arms, or upper bounds on them, are known."""
        return self.is_bounded or self._given_variances is not None

    @property
    def _given_variances(self) -> FloatArray | None:
        return None if isinstance(self.rewards, Bounded) else self.rewards.variances

    @property
    def is_bounded(self) -> bool:
        """Whether only bounds of the rewards are known (``rewards=Bounded(...)`` or ``Bernoulli()``)."""
        return isinstance(self.rewards, Bounded)

    @property
    def is_graded(self) -> bool:
        """Whether rewards of independent streams lie within bounds, and may be other than the bounds."""
        return self.is_bounded and not self.is_binary and self.items is None

    @property
    def has_lower_bound(self) -> bool:
        """Whether a lower bound on pulls is proved for this kind of rewards.

        The proofs use Gaussian instances with known variances. They say nothing about algorithms that need
        to be right only for rewards within bounds. If all arms are selected, the bound is 0 for all rewards.
        """
        return self.m == self.n or (self.knows_variances and self.bounds is None)

    @property
    def own_bounds(self) -> list[tuple[float, float]] | None:
        """The bounds of each arm, if they have been declared arm by arm."""
        own = self.rewards.own if isinstance(self.rewards, Bounded) else None
        return None if own is None else list(own)

    def limits(self, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the declared bounds of some arms; infinite if there are none."""
        if self._own_limits is not None:
            return self._own_limits[0][arms], self._own_limits[1][arms]
        low, high = self.bounds or (-np.inf, np.inf)
        return np.full(np.shape(arms), low), np.full(np.shape(arms), high)

    @cached_property
    def _own_limits(self) -> FloatArray | None:
        return None if self.own_bounds is None else np.array(self.own_bounds, dtype=np.float64).T

    @property
    def width(self) -> float:
        """The distance between the declared bounds; infinite if there are none."""
        low, high = self.bounds or (-np.inf, np.inf)
        return high - low

    def shares(self, merits: FloatArray) -> FloatArray:
        """Return merits as shares of the bounds, where 0 is as bad, and 1 as good, as a mean can be."""
        low, high = self.bounds or (-np.inf, np.inf)
        worst = low if self.goal == "maximise" else -high
        return np.clip((merits - worst) / (high - low), 0.0, 1.0)

    def mean_squares(self, counts: IntArray, merits: FloatArray, variances: FloatArray | None) -> FloatArray:
        """Return the means of squared shares, from sample variances; the largest possible where unknown.

        The square of a single reward is known.
        """
        shares = self.shares(merits)
        spreads = np.full(len(shares), np.nan) if variances is None else variances
        spreads = spreads * (counts - 1) / np.maximum(counts, 1) / self.width**2
        spreads = np.where(counts == 1, 0.0, np.where(np.isnan(spreads), np.inf, spreads))
        return np.minimum(shares**2 + spreads, shares)

    @cached_property
    def variances(self) -> FloatArray:
        """One variance proxy per arm; raises InvalidProblem if they are unknown."""
        if isinstance(self.rewards, Bounded):
            low, high = self.limits(self.arms)
            largest = ((high - low) / 2) ** 2
            largest.flags.writeable = False
            return largest
        if self.rewards.variances is None:
            raise InvalidProblem(
                "the variances of this problem are unknown. For this, state them: give `variances`, or "
                "upper bounds on them, or `rewards=Gaussian(variances)`."
            )
        return self.rewards.variances

    def variances_at(self, means: FloatArray, pulls: IntArray) -> FloatArray:
        """Return the variances as stated or, for rewards within bounds, the largest that these means allow.

        Rewards of 0 or 1 have exactly that variance. As in the race, two more rewards are counted, one at
        either bound, since a mean at a bound does not prove that rewards never vary.
        """
        if not self.is_bounded:
            return self.variances
        shares = (self.shares(self.merits(means)) * pulls + 1) / (pulls + 2)
        return self.width**2 * shares * (1 - shares)

    @property
    def noise(self) -> str:
        """The kind of rewards as written to files and logs (sub-gaussian, gaussian or gaussian-unknown)."""
        if not self.knows_variances:
            return UNKNOWN
        if isinstance(self.rewards, Bounded):
            return "bernoulli" if isinstance(self.rewards, Bernoulli) else "bounded"
        return "gaussian" if isinstance(self.rewards, Gaussian) else "sub-gaussian"

    @property
    def is_binary(self) -> bool:
        """Whether every reward was declared to be 0 or 1."""
        return isinstance(self.rewards, ZeroOne | Bernoulli)

    @property
    def declared_rewards(self) -> str | None:
        """What was declared of the rewards besides their bounds ("bernoulli" or None)."""
        return "bernoulli" if self.is_binary else None

    @property
    def pilot(self) -> int | None:
        """The number of pilot pulls per arm if variances are unknown; None to choose it automatically."""
        return self.rewards.pilot if isinstance(self.rewards, Gaussian) else None

    @property
    def words(self) -> str:
        """The question, as a phrase."""
        if self.goal == "maximise":
            best = "best arm" if self.m == 1 else f"{self.m:,} best"
        else:
            best = "smallest" if self.m == 1 else f"{self.m:,} smallest"
        on = "" if self.items is None else f" on {self.n_items:,} {'item' if self.n_items == 1 else 'items'}"
        on = " in shared blocks" if self.has_blocks else on
        arms = "1 arm" if self.n == 1 else f"{self.n:,} arms"
        return f"the {best} of {arms} to within {self.epsilon:g}{on}"

    @cached_property
    def arms(self) -> IntArray:
        """All arms, by number; read-only."""
        every = np.arange(self.n)
        every.flags.writeable = False
        return every

    def name(self, arm: int) -> str:
        """Return the name of one arm."""
        return f"arm-{arm}" if self.names is None else self.names[arm]

    def cost_of(self, pulls: IntArray) -> float:
        """Return the cost of a number of pulls of each arm."""
        return float(pulls.sum() if self.costs is None else self.costs @ pulls)

    @property
    def highest_cost(self) -> float:
        """The cost of the most expensive pull."""
        return 1.0 if self.costs is None else float(self.costs.max())

    def merits(self, means: FloatArray) -> FloatArray:
        """Return means such that larger is better, as strategies expect: negated if small means are good."""
        return means if self.goal == "maximise" else -means

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the problem, the same for equal problems on every machine."""
        if not self.knows_variances:
            numbers = (self.n, self.m, self.epsilon, self.delta, self.names, self.pilot)
            words = (*numbers, self.guarantee, self.goal)
            whole = hashlib.sha256(f"unknown {words!r}".encode())
            whole.update(self._hashed_costs)
            if self.items is not None:
                whole.update(f"\0items {self.items.digest}".encode())
            return whole.hexdigest()
        parts = hashlib.sha256(struct.pack("<qqdd", self.n, self.m, self.epsilon, self.delta))
        parts.update(self.variances.astype("<f8").tobytes())
        for name in self.names or ():
            parts.update(struct.pack("<q", len(name.encode())) + name.encode())
        for word in (self.noise, self.guarantee, self.goal):
            if word in {"gaussian", *BOUNDED, "indifference", "minimise"}:  # defaults are not hashed
                parts.update(f"\0{word}".encode())
        if self.bounds is not None:
            parts.update(f"\0{self.declared_rewards or 'bounds'}".encode() + struct.pack("<dd", *self.bounds))
        parts.update(self._hashed_costs)
        if self._own_limits is not None:
            parts.update(b"\0own" + self._own_limits.astype("<f8").tobytes())
        if self.has_own_step:
            parts.update(f"\0step {self.step!r}".encode())
        if self.items is not None:
            parts.update(f"\0items {self.items.digest} {self.target}".encode())
        if self.known is not None:
            parts.update(f"\0known {self.known.digest}".encode())
        return parts.hexdigest()

    @property
    def _hashed_costs(self) -> bytes:
        return b"" if self.costs is None else b"\0costs" + self.costs.astype("<f8").tobytes()

    def to_dict(self) -> dict[str, Any]:
        """Return what identifies the problem as plain data for JSON, without the individual arms."""
        data = {
            "n": self.n,
            "m": self.m,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "guarantee": self.guarantee,
            "goal": self.goal,
        }
        if self.knows_variances:
            bounds = None if self.bounds is None else list(self.bounds)
            data |= {"bounds": bounds, "rewards": self.declared_rewards}
        else:
            data["pilot"] = self.pilot
        if self.costs is not None:
            data["has_costs"] = True
        if self.own_bounds is not None:
            data["has_own_bounds"] = True
        if self.has_blocks:
            data["blocks"] = True
            data |= {"lockstep": True} if self.is_lockstep else {}
        elif self.items is not None:
            data |= {"n_items": self.n_items, "target": self.target}
        if self.has_own_step:
            data["step"] = self.step
        return data | {"digest": self.digest}

    def changed(self, **changes: Any) -> Problem:
        """Return the same problem with some of its parts replaced.

        A kind of rewards without variances, as in ``changed(rewards=Gaussian)``, keeps the variances.
        """
        parts = self._parts | changes
        kind = changes.get("rewards") or type(self.rewards)
        if isinstance(kind, Bounded):
            parts["bounds"] = changes.get("bounds")  # those of the rewards
        elif isinstance(kind, type) and ("variances" in changes or "rewards" in changes):
            kind = SubGaussian if issubclass(kind, Bounded) else kind
            known = self.variances if self.knows_variances else None
            parts["rewards"] = kind(parts.pop("variances", known))  # type: ignore[call-arg]
            parts["n"] = None if parts["rewards"].variances is not None else parts["n"]
        elif kind == "bernoulli":
            parts.setdefault("variances", self.variances)
        return Problem(**parts)

    def with_variances(self, variances: ArrayLike, **changes: Any) -> Problem:
        """Return the problem that remains once variances, or bounds on them, are known."""
        return self.changed(**({"rewards": SubGaussian(variances)} | changes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Callable[[], Problem], tuple[()]]:
        return partial(Problem, **self._parts), ()

    @property
    def _parts(self) -> dict[str, Any]:
        names = _PARTS if self.items is None else (*_PARTS, *_ITEM_PARTS)
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        goal = "" if self.goal == "maximise" else f", goal={self.goal!r}"
        rewards = f", rewards={self.rewards!r}" if self.is_bounded else ""
        rewards = rewards if self.knows_variances else ", rewards=Gaussian()"
        items = "" if self.items is None else f", items={self.n_items}"
        items = f", items={self.items!r}" if self.has_blocks else items
        asked = f"m={self.m}, epsilon={self.epsilon}, delta={self.delta}, n={self.n}"
        return f"Problem({asked}{rewards}{items}{goal})"


def checked(problem: object) -> Problem:
    """Return the problem; raise InvalidProblem for anything else."""
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"`problem` is {problem!r}; it must be a shortlist.Problem.")
    return problem


def whole_pulls(shape: tuple[int, ...], amounts: Callable[[slice], FloatArray], purpose: str) -> IntArray:
    """Return pull counts rounded up to whole pulls, at least one each.

    ``amounts(block)`` returns the unrounded counts for a slice of the last axis. Raises InvalidProblem if a
    count, or the sum over the last axis, is too large to be exact.
    """
    counts = np.empty(shape, dtype=np.int64)
    totals = np.zeros(shape[:-1])
    for block in blocks(shape):
        rounded = amounts(block)
        np.ceil(rounded, out=rounded)
        if rounded.min() < 1.0:  # an amount may round to zero, but every arm is pulled
            np.maximum(rounded, 1.0, out=rounded)
        totals += rounded.sum(axis=-1)
        if not (totals <= MOST_PULLS).all():
            raise _too_many(float(totals.max()), purpose)
        counts[..., block] = rounded
    return counts


def countable(pulls: int, purpose: str) -> int:
    """Return a number of pulls, or raise InvalidProblem if it is too large to be exact."""
    if pulls > MOST_PULLS:
        raise _too_many(float(pulls), purpose)
    return pulls


def _too_many(pulls: float, purpose: str) -> InvalidProblem:
    return InvalidProblem(
        f"{purpose} needs at least {pulls:.3g} pulls, but at most 2**53 = {MOST_PULLS:.3g} can be counted "
        f"exactly. Use a larger `epsilon`, or check the units: `epsilon` is in the units of the rewards, "
        f"`variances` in their square."
    )


def _checked_rewards(variances: object, rewards: object) -> Rewards:
    if rewards is None or (isinstance(rewards, str) and rewards == "bernoulli"):
        if variances is None:
            raise InvalidProblem(
                "what is known of the rewards? Give `variances`, one per arm, or `rewards`: "
                "shortlist.Bernoulli() for 0 and 1, shortlist.Bounded(low, high) for scores within bounds, "
                "shortlist.Gaussian() if their variances are unknown."
            )
        kind = SubGaussian if rewards is None else ZeroOne
        return kind(variances)  # type: ignore[arg-type]
    if not isinstance(rewards, SubGaussian | Gaussian | Bounded):
        raise InvalidProblem(
            f"`rewards` is {checks.shortened(rewards)}; it must be shortlist.Bernoulli(), "
            f"shortlist.Bounded(low, high), shortlist.SubGaussian(variances) or "
            f"shortlist.Gaussian(variances), or shortlist.Gaussian() if variances are unknown."
        )
    if variances is not None and isinstance(rewards, Bounded):
        raise InvalidProblem(
            "give `variances` or bounds of the rewards, not both: for rewards within bounds, with variances "
            "that are known, give `variances` and `bounds`."
        )
    if variances is not None:
        raise InvalidProblem("give the variances once: as `variances`, or with `rewards`, not both.")
    return rewards


def _rewards_of_noise(noise: str, variances: object, rewards: object) -> Any:
    """Return the rewards meant by `noise`, and warn with the replacement."""
    kind = checks.one_of(noise, "noise", ("sub-gaussian", "gaussian"))
    instead = "rewards=shortlist.Gaussian(variances)" if kind == "gaussian" else "`variances` alone"
    checks.deprecated(f'`noise="{kind}"`', instead, stacklevel=4)
    if rewards is not None:
        raise InvalidProblem("`noise` and `rewards` mean the same; give `rewards` alone.")
    return rewards_of(kind, variances)


def _number_of_arms(n: object, names: Sequence[str] | None, rewards: Rewards) -> int:
    if isinstance(rewards, Bounded) and rewards.own is not None:
        found = len(rewards.own)
        for given in (n, None if names is None else len(checks.listed(names))):
            if given is not None and given != found:
                raise InvalidProblem(
                    f"there are bounds of {found} arms, but {checks.shortened(given)} arms; give one each."
                )
        return found
    if not isinstance(rewards, Bounded) and rewards.variances is not None:
        found = len(rewards.variances)
        if n is not None and n != found:
            raise InvalidProblem(
                f"`variances` has {found} entries but there are {checks.shortened(n)} arms; give one per arm."
            )
        return found
    if names is None or isinstance(names, str | bytes):
        if not checks.is_whole(n) or not 1 <= n <= checks.MOST_ARMS:  # type: ignore[operator]
            raise InvalidProblem(
                f"`n` is {checks.shortened(n)}; give the number of arms, from 1 to {checks.MOST_ARMS:,}, or "
                f"their `names`."
            )
        return int(n)  # type: ignore[call-overload,no-any-return]
    listed = checks.listed(names)
    if n is not None and (not checks.is_whole(n) or n != len(listed)):
        raise InvalidProblem(
            f"`n` is {checks.shortened(n)} but there are {len(listed)} `names`; leave `n` out."
        )
    if not listed:
        raise InvalidProblem("`names` is empty: there is no arm to select. Name at least one.")
    return len(listed)


def _checked_bounds(bounds: object, rewards: Rewards) -> tuple[float, float] | None:
    given = None if bounds is None else checks.bounds(bounds)
    if not isinstance(rewards, ZeroOne | Bounded):
        return given
    own = (rewards.low, rewards.high) if isinstance(rewards, Bounded) else (0.0, 1.0)
    if given not in (None, own):
        said = (
            "every reward is 0 or 1"
            if own == (0.0, 1.0)
            else f"rewards lie between {own[0]:g} and {own[1]:g}"
        )
        raise InvalidProblem(f"`rewards` says that {said}, but `bounds` is {bounds!r}. Leave `bounds` out.")
    return own


def _known(problem: Problem, given: Any) -> Known | None:
    """Return complete rows of scores, which must be possible rewards."""
    names = {problem.name(arm): arm for arm in range(problem.n)}
    known, (low, high) = Known.of(given, names, (problem.n, problem.n_items)), problem.bounds or (0.0, 1.0)
    if known is None:
        return None
    scores = known.scores
    is_wrong = ~((scores >= low) & (scores <= high) & is_on_step(scores, low, problem.step))
    if is_wrong.any():
        arm = problem.name(int(known.arms[is_wrong.any(axis=1)][0]))
        raise InvalidProblem(
            f"`known` has the score {scores[is_wrong][0]:g} of {arm}, which is not possible."
        )
    return known


def _check_items(problem: Problem) -> None:
    """Refuse what does not go together with shared items."""
    if problem.has_pool:
        refuse_large_table(problem.n, problem.n_items, "items", "draw a random sample of the items")
    if problem.items is None:
        raise InvalidProblem("`known` and `target` are about `items`; give the items, or leave them out.")
    if problem.has_blocks and not problem.is_bounded and problem.knows_variances:
        raise InvalidProblem(
            "in blocks only differences between arms matter, and their variances do not follow from the "
            "variances of the arms. Use rewards=shortlist.Gaussian(), without variances, or rewards with "
            "bounds."
        )
    if not problem.has_blocks and not problem.is_bounded:
        raise InvalidProblem(
            "with `items`, `rewards` must have bounds: use shortlist.Bernoulli() if every score is 0 or 1, "
            "or shortlist.Bounded(low, high)."
        )
    if problem.own_bounds is not None:
        raise InvalidProblem("with `items`, all arms must have the same bounds; scale the scores.")
    if problem.guarantee != "pac":
        raise InvalidProblem("with `items`, `guarantee` must be 'pac'.")
    if problem.has_blocks and problem.pilot is not None:
        raise InvalidProblem("blocks need no pilot; leave `pilot` out.")
    if problem.is_lockstep and problem.is_bounded:
        raise InvalidProblem("blocks in lockstep are for Gaussian rewards; use Blocks(), or sl.Gaussian().")
    if problem.target == "population" and problem.epsilon == 0:
        raise InvalidProblem("`epsilon` may be 0 for a pool of items, but not for a population.")


def refuse_large_table(n: int, n_columns: int, columns: str, remedy: str) -> None:
    """Raise InvalidProblem if a table of scores, one row for each arm, is too large to be held."""
    cells = n * n_columns
    if cells > MOST_CELLS:
        raise InvalidProblem(
            f"{n:,} arms on {n_columns:,} {columns} would need about {16 * cells / 1e9:,.1f} GB of memory: "
            f"the table has {cells:,} scores, and at most {MOST_CELLS:,} are possible. Compare fewer arms, "
            f"or {remedy}: at most {max(1, MOST_CELLS // n):,} for so many arms."
        )


def _refuse_endless(problem: Problem) -> None:
    # No strategy can tell arms apart while x = epsilon^2 t / (2 s^2) is of order 1 or less.
    with np.errstate(over="ignore", divide="ignore"):
        least = float(problem.variances.sum() / problem.epsilon / problem.epsilon)
    if not least <= MOST_PULLS:
        raise _too_many(least, f"epsilon = {problem.epsilon!r} with these variances")
