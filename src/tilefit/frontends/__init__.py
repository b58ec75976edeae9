"""Frontends: each turns a source of one toolchain into Kernel values."""
