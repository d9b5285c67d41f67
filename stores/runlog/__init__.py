"""What questions leave behind: runs, conversations, opinions, jobs."""
