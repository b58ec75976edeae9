def broken():
    raise RuntimeError("the weather is bad\nand will stay so")


broken()
