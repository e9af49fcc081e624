"""Pure decisions: facts in, a small frozen value out. Shells obey them."""
