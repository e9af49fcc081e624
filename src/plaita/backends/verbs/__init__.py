"""The verbs of the protocol, one file each, over ``backends.rows``; semantics: ``docs/explain/protocol.md``."""
