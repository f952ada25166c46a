"""What released coefficients say: confidence bands and other free post-processing."""
