"""What an index writes: decisions, answers and the log offset, together or not at all."""

from __future__ import annotations

from twinsieve.pipeline.blocks_verdicts import Ruling, encode_ruling
from twinsieve.pipeline.index_config import IndexConfig, IndexStep
from twinsieve.pipeline.ports import AbortableError, Broker, Committed, Hook, Membership, Messages


class Record:
    """The right to write. Whoever makes one takes it from all others of the app."""

    def __init__(self, broker: Broker, config: IndexConfig, hook: Hook) -> None:
        self._config = config
        self._hook = hook
        self.transactor = broker.transactor(config.transactional_id)

    def commit(self, rulings: list[tuple[Ruling, int]], at: int, membership: Membership) -> None:
        """One transaction.

        rulings: each with the partition its answer goes to; at: log offset behind them
        raises: AbortableError when nothing of it counts
        """
        config, transactor = self._config, self.transactor
        decisions = Messages()
        answers: dict[int, Messages] = {}
        for ruling, reply in rulings:
            decision, answer = encode_ruling(ruling, config.scheme)
            decisions.add(None, decision)
            answers.setdefault(reply, Messages()).add(None, answer)
        try:
            transactor.begin()
            self._hook(IndexStep.BEGUN)
            if rulings:
                transactor.send(config.decisions.topic, config.decisions.number, decisions)
            self._hook(IndexStep.DECIDED)
            for reply, messages in answers.items():
                transactor.send(config.verdicts, reply, messages)
            self._hook(IndexStep.ANSWERED)
            transactor.send_offsets({config.log: Committed(at)}, membership)
            self._hook(IndexStep.OFFSETS_SENT)
            transactor.commit()
        except AbortableError:
            transactor.abort()
            raise
        self._hook(IndexStep.COMMITTED)

    def close(self) -> None:
        """Give the right up; what is open is aborted by whoever comes next."""
        self.transactor.close()
