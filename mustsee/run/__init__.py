"""What a run takes in and leaves behind: inputs, outputs, report, ledger, limits, preflight."""
