"""Benchmarks that compare two things in one run and print the ratio; nothing here is a test."""
