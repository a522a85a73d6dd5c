"""The torch side: captures chains, runs them under strategies, measures. No Qt."""
