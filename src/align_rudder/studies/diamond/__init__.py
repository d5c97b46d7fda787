"""ObtainDiamond: our system, what it is compared with, tables, figures and videos."""
