"""The generators, one folder each; `workbench worlds list` shows them."""
