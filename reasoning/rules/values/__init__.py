"""Values in texts: dates, numbers and names, and how well each fits what is asked for."""
