"""`python -m proctor`: the command line, where its script is not on the path."""

from proctor.cli.main import main

if __name__ == "__main__":
    main()
