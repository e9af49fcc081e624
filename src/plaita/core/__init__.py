"""What a flow is, how it is read and checked, and how it runs in this process."""
