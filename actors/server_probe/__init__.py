"""`mustsee probe`: asks a server what it sees, hears, orders and times."""
