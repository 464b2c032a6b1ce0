"""Parts that several families of policies share."""
