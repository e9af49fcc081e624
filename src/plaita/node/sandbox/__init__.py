"""Running an author's script in a process of its own, under limits.

``process`` is the side of the worker. It starts ``supervisor`` in a fresh interpreter; that one forks the process of
the script (``script``, for the restricted backend with ``restricted``), watches it and says how it ended. The modules
of the child import as little as they can: each import delays every script.

This is containment of mistakes, not a sandbox against a hostile author: a script runs as the user of the worker.
"""
