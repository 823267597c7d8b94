"""The kinds of mishap that a hostile run is made of."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What may go wrong, beside what always may: kills, restarts, zombies, rebalances, errors of any call."""

    STALLS = "stalls"
    """A process stands still inside a call while others go on, but not for as long as its session lasts."""

    FROZEN = "frozen"
    """The same, for longer than its session."""

    LATE = "late-appends"
    """Blocks are written late, in part, or after those of a newer session."""

    ANSWERS_TRIMMED = "verdicts-trimmed"
    """Retention takes answers that nobody has read yet."""

    TRANSACTIONS = "input-transactions"
    """Producers of the input write in transactions, of which some are aborted."""

    QUICK_SNAPSHOTS = "quick-snapshots"
    """A snapshot may be stored before the step that asked for it ends."""

    MOVES = "moves"
    """Operators move offsets, delete the input and make it again."""

    INPUT_TRIMMED = "input-trimmed"
    """Retention takes input that was not emitted yet."""

    SETTINGS = "changed-settings"
    """Processes start with other rules, and take over from each other."""

    LEADERLESS = "leaderless"
    """Any partition may have no leader for a while."""

    RETENTION = "retention"
    """Retention takes the log, the decisions or both, with no regard to snapshots."""

    TRUNCATION = "truncation"
    """Log or decisions lose their tail while nobody runs."""

    DEFECTS = "defects"
    """An error in any call ends a process, which closes its clients and leaves its groups."""

    SEED = "seed"
    """The windows are filled from an existing output, before the app goes live, until it does, or too late."""

    TOPICS = "topics"
    """Inputs and outputs are deleted and made again, with more or fewer partitions, the same messages elsewhere; an
    input is taken out, and in again."""

    COMPACTION = "compaction"
    """Compaction takes messages of the input, judged or not."""

    LIMITS = "limits"
    """Outputs take smaller messages than the input, now these and now those."""

    PLACES = "places"
    """Inputs and outputs have different numbers of partitions, messages have many keys, or none."""

    SLOW_JUDGING = "slow-judging"
    """What an index polls at once may take it longer to judge than its session lasts."""

    SLOW_OUTPUT = "slow-outputs"
    """A transaction may take longer than it may."""

    REFUSED = "refused-transactions"
    """The broker refuses transactions, several one after the other."""

    RESTORED = "restored-clusters"
    """The cluster is put back to an earlier moment; state folders stay as they are."""

    STRANGERS = "strangers"
    """Other consumers join the workers' group and commit in it; tools move and delete its offsets."""

    REFUSING = "refused-messages"
    """An output refuses single messages, for their key or for a reason that nobody can ask for."""

    UNREADABLE = "unreadable-batches"
    """Batches of the input cannot be read for a while; workers wait for them or skip them."""

    CLOCKS = "clocks"
    """Clocks of processes are wrong by hours and jump; machines stand still without noticing."""

    SHARDS = "shards"
    """A near window in segments, for which shards answer: they are killed, freeze and end, two have one name or one has
    other settings, they read slowly or nothing, their store is away or hangs, its files are missing, cut or of others,
    their disk is full, answers are lost, doubled, damaged or forged, and their topic is deleted or closed."""

    REGISTRY = "schema-registry"
    """Messages need schemas of a registry that refuses some, says nothing of others, is busy or answers nothing."""
