"""The command line: thin commands over the rooms below; heavy libraries load inside them."""
