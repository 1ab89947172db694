"""A depot's stock, counted from its movements: the smallest complete generator, and what `workbench worlds new` starts from."""
