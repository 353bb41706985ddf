"""Files with made contents: one maker for each form."""
