"""Prints the objectives and findings of a result, a line each."""

import json
import sys

with open(sys.argv[1]) as file:
    result = json.load(file)
for trial in result["trials"]:
    for objective in trial["objectives"]:
        print(f"{trial['label']}: {objective['text']}: {objective['measured']}, kept: {objective['kept']}")
    for finding in trial["findings"]:
        print(f"{trial['label']}: {finding['title']}")
