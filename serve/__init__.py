"""HTTP routes, authentication and the web page; nothing is here yet."""
