from __future__ import annotations

from tests.broker.fixtures import bootstrap, mortal_broker, secure_broker, three_brokers

__all__ = ["bootstrap", "mortal_broker", "secure_broker", "three_brokers"]
