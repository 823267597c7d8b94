"""The exact stage: Bloom generations, or a trie where exactness is required."""
