"""What an operator can do, one use case a file: plain functions over the ports, JSON shapes out."""
