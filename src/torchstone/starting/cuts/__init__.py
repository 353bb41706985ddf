"""Where data cannot be made, the code that reads them is cut out.

`scopes` chooses the dataset or the function, `structure` reads what it gives, `undecided` is a value whose
form is open, `trials` and `defaults` decide the form at its first use, `replacing` puts values in the place
of the code. Each decision ends the run; the next one begins with it, so that the program that is judged sees
ordinary tensors only.
"""
