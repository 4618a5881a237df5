"""``ranvier study dormancy``: do neurons that fall asleep save energy at equal accuracy?"""

from scripts.studies.dormancy.command import HELP, add_arguments, run

__all__ = ["HELP", "add_arguments", "run"]
