"""Names of torch that are not part of its interface, one module per concern.

The rest of Torchstone imports them from here, so that a new torch is looked at in one place. What
is missing in a supported version has another way or a sentence that names the version it needs.
"""
