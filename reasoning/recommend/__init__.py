"""What a need asks for, how well documents meet it, and why they are recommended."""
