"""The studies behind the tables of the docs; each can be stopped and resumed."""
