"""What logged rewards say of means: draws of the mean of each cell that allow for rewards larger than any seen so far."""
