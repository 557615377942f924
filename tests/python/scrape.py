"""Reads a scrape from standard input with Prometheus' own parser and prints it as one JSON object."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps({sample.name: [family.type, bool(family.documentation), sample.value, sample.labels]
                  for family in families for sample in family.samples}))
