def kernel(
    return 1
