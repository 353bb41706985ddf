"""A held-out set whose author had not seen any detector."""
