"""The exact stage: a Bloom filter in generations, or a trie if no false hit is allowed."""
