"""``python -m damier`` is the command ``damier``."""

from damier.cli import app

if __name__ == "__main__":
    app(prog_name="damier")
