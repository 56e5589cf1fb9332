"""Backends: generators of code from Programs, and transpilers of ops to other frameworks."""
