"""testing/conformance"""
