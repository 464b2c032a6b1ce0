"""APE^2, MR-UCB and MR-APE: policies on the p-robust mean."""
