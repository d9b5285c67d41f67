"""Word, PowerPoint, spreadsheets, OpenDocument and RTF, with the containers that they lie in."""
