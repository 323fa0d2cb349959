"""The version of fkl, readable without importing the package; run as a script it prints it for meson."""

__version__ = "0.1.0"

if __name__ == "__main__":
    print(__version__)
