"""Documents of flows to Python source. Compiling the source again gives a flow that behaves the same."""

from plaita.dsl.codeflow.emitting.module import emit_source

__all__ = ["emit_source"]
