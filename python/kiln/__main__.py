"""python -m kiln: the program."""
import os
import sys

from .runs import program


def main():
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
