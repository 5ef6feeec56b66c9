"""What the backend says of the graphs that it is given, for the scripts of this folder."""

import logging


class Told(logging.Handler):
    """Keeps the messages of the logger collage.torch in `lines`; nothing is printed."""

    def __init__(self):
        super().__init__()
        self.lines = []
        logger = logging.getLogger("collage.torch")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())
