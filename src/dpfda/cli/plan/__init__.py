"""What `dpfda plan` computes and says."""
