"""kafka-python behind `pipeline.broker.ports`.

Of the rest of the program only `commands/kafka/connect.py` imports this folder.
"""
