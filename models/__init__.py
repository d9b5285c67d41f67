"""What has weights: embedders and their files; each a small factory."""
