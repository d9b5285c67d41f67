"""What a claim says, word by word, beside what its evidence says."""
