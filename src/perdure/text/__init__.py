"""Text in and out: durations, counted nouns, suggestions, and values made safe to show."""
