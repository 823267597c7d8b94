"""Example settings, one a file. `twinsieve config list` names them."""
