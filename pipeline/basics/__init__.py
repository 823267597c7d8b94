"""What every part of the pipeline may use and what uses none of them."""
