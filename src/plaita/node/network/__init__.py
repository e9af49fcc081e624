"""Requests to other machines: which addresses may be reached, how names become connections, how redirects go on."""
