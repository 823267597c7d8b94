"""The formats of files, each in one module; `files.FORMATS` lists them."""
