"""One library a file, used as its manual shows it, with candidates from a similarity of .85 on."""
