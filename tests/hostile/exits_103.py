import os

os._exit(103)
