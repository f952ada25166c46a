"""What a study will cost: the error to expect before anything is spent, and the theory of rates and regimes."""
