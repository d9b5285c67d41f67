"""What is remembered for a time: one protocol, in this process's memory or in Redis too."""
