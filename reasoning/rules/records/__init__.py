"""Questions over records: their fields, conditions, groups and answers."""
