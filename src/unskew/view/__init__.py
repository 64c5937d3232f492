"""``unskew view DIR``: a page on this machine to browse a run's samples, and to correct what stage 1 said of them."""
