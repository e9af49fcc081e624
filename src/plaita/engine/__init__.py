"""The pure core: a state machine that decides what happens next and never acts.

``program`` is what a flow compiles to, ``machine`` moves a run through it, ``delta`` says what changed.
"""
