"""The keys of tests/artifact/signing_keys.h, by their names there: PEM."""

import os
import re

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "artifact", "signing_keys.h"), encoding="utf-8") as header:
    KEYS = {name: "".join(line + "\n" for line in re.findall(r'"(.*)\\n"', lines))
            for name, lines in re.findall(r'k(\w+Key)\[\] =((?:\s+".*\\n")+);', header.read())}
