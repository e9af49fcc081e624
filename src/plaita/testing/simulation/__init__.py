"""Real workers on a real store in virtual time, with everything that can go wrong drawn from one seed."""
