"""The attempts of a shim at one task."""

from __future__ import annotations

import uuid
from typing import Iterable, Sequence

from ..attempt import Attempt, Unfit
from ..client import Client, ServiceError, ServiceUnreachable
from .column_forms import with_columns
from .run_name import RUN
from .seeds import RETRY_STEP

REFILLS = 4


class Play:
    """Attempts at one task. A failed attempt is played again, up to REFILLS times. A failure does not count as the
    reward 0. Attempt number `p` has the seed `seed + p`. Each repetition adds RETRY_STEP. So the samples of an attempt
    do not depend on the other attempts. `columns` names the side columns that the trainer takes.
    """

    def __init__(self, client: Client, *, split: str, task: int, samples: int = 1, seed: int = 0,
                 sampling: dict[str, float] | None = None, columns: Sequence[str] = ()) -> None:
        self._columns = columns
        self._client, self._split, self._task, self._sampling = client, split, task, sampling
        self._samples, self._seed, self._key = samples, seed, f"{RUN}/{uuid.uuid4().hex}"
        self._found: dict[int, Attempt] = {}
        # Unfinished batches, with the first place of each.
        self._open: dict[str, int] = {}
        self._has_begun, self.is_over = False, False

    def begin(self) -> None:
        """Requests the attempts on the first call. Does not wait for them."""
        if self._has_begun or self.is_over or self._samples == 0:
            return
        self._has_begun = True
        self._submit(0, self._samples, 0)

    def scored(self) -> list[Attempt]:
        """Returns the attempts in the order of their numbers. Raises Unfit if too few attempts were scored."""
        tries = 0
        try:
            self.begin()
            while True:
                self._collect()
                missing = [place for place in range(self._samples) if place not in self._found]
                tries += 1
                if not missing:
                    return [self._found[place] for place in range(self._samples)]
                if self.is_over or tries > REFILLS:
                    raise Unfit(f"Task {self._split}/{self._task}: {len(missing)} of {self._samples} attempts were not "
                                f"scored in {tries} tries")
                for place in missing:
                    self._submit(place, 1, tries)
        except ServiceUnreachable:
            raise
        except BaseException:
            self.give_up()
            raise

    def cancel(self) -> None:
        """Cancels unfinished attempts, from any thread. Then `scored()` raises Unfit unless all attempts were scored."""
        self.is_over = True
        problem: ServiceError | None = None
        for batch in list(self._open):
            try:
                self._client.cancel(batch)
            except ServiceError as error:
                # Continues with the others if the service no longer has this batch.
                problem = problem or error
        if problem is not None:
            raise problem

    def give_up(self) -> None:
        """Cancels after another error. Ignores errors of the service."""
        try:
            self.cancel()
        except (ServiceError, ServiceUnreachable):
            pass

    def _submit(self, place: int, samples: int, tries: int) -> None:
        batch = self._client.submit(
            key=f"{self._key}/{tries}/{place}", split=self._split, tasks=[self._task], samples=samples,
            seed=self._seed + place + RETRY_STEP * tries, sampling=self._sampling).batch
        self._open[batch] = place
        if self.is_over:
            self._client.cancel(batch)

    def _collect(self) -> None:
        for batch, first in list(self._open.items()):
            for group in self._client.groups(batch):
                self._keep(first, group.attempts)
                # The trainer has them now. After a restart it draws new ones.
                self._client.acknowledge(group.cursor, batch)
            del self._open[batch]

    def _keep(self, first: int, attempts: Iterable[Attempt]) -> None:
        for place, attempt in enumerate(attempts, first):
            if attempt.is_scored:
                self._found[place] = with_columns(self._client, attempt, self._columns)
