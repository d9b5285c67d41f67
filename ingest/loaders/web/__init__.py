"""HTML, XML and what is made of them: feeds, books, articles."""
