"""Who may do what, and how much of a payload they see."""
