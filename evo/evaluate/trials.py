"""Which of several ways to do the same work takes less time, by batches in turn.

Owns the trials and their arithmetic. They decide no result: all ways give the same bits. Knows nothing of what the ways are.
"""

from collections.abc import Sequence
from statistics import median


class Trials:
    """The way of each batch: the first one, until trials show which is the fastest; then the fastest, until the next trials.

    Args:
        ways: of which the first wins a tie.
        chosen: the way before the first trials.
        num_trials: batches each way, in turn, after one that warms up.
        first_s, first_batches: seconds of work and batches before the first trials.
        recheck_s: seconds of work after which all are tried again: the machine may have been busy.
        gains: a way that is named here must be faster by this factor to be chosen.
    """

    def __init__(
        self,
        ways: Sequence[str],
        chosen: str,
        *,
        num_trials: int,
        first_s: float,
        recheck_s: float,
        first_batches: int = 0,
        gains: dict[str, float] | None = None,
    ):
        self.chosen = chosen
        self.is_decided = False  # whether trials have been made
        self._ways = ways
        self._num_trials = num_trials
        self._until_s, self._until_batches = first_s, first_batches
        self._recheck_s = recheck_s
        self._gains = gains or {}
        self._spent_s, self._num_batches = 0.0, 0  # since the last choice
        self._costs_s: dict[str, list[float]] = {way: [] for way in ways}  # of a unit of work, by trial

    @property
    def is_due(self) -> bool:
        """Whether it is time to try all ways."""
        return self._spent_s >= self._until_s and self._num_batches >= self._until_batches

    @property
    def way(self) -> str:
        """The way of the next batch."""
        if not self.is_due:
            return self.chosen
        return min(self._ways, key=lambda way: (len(self._costs_s[way]), way != self.chosen))

    def note(self, way: str, seconds: float, amount: int) -> None:
        """Takes the time of a batch with this amount of work. Chooses after enough trials, by medians: a busy moment decides
        nothing.
        """
        if not self.is_due:
            self._spent_s += seconds
            self._num_batches += 1
            return
        self._costs_s[way].append(seconds / max(1, amount))
        if min(map(len, self._costs_s.values())) > self._num_trials:
            self.chosen = min(self._ways, key=lambda each: median(self._costs_s[each][1:]) * self._gains.get(each, 1.0))
            self.is_decided = True
            self._costs_s = {each: [] for each in self._ways}
            self._spent_s, self._num_batches = 0.0, 0
            self._until_s, self._until_batches = self._recheck_s, 0
