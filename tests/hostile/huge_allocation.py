block = b"x" * (100 * 2**30)
