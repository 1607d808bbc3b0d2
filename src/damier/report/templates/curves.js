// curves of what the scores are worth
