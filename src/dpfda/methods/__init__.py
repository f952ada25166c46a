"""What to ask and how to learn: the one loop and the coordinators of each method. All of it is post-processing."""
