"""One run of a program of the project, written down so that parts of it can be run again.

Everything here happens in a child process that ends with the experiment: nothing is put back.
"""
