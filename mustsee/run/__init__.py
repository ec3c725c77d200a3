"""What a run takes in and leaves behind: its list of videos, tables, report, lease, and record."""
