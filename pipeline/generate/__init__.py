"""Made-up streams of posts and of news articles with known duplicates."""
