"""The drivers of `plan`: devices, stages, ladder, edits, files and folders, the Report."""
