"""What people see: answers, progress, drawings and messages on the terminal."""
