"""Forms of questions, one module each. A form is named in `conf/ask/facts.yaml`."""
