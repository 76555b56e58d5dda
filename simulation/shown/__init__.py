"""What the API and ``roadstead status`` show, compared with the truth after every event.

The truth is what the operators pushed, what Azure has, which messages wait, and who acts. Only what an event
changed is compared. "untrue" is a statement that is wrong, "silent" a wait without a reason, or without
anybody who ends it.
"""
