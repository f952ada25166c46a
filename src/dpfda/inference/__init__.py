"""What released coefficients say: curves with their joint uncertainty, bands, tests, and other free post-processing."""
