"""Reports: the record with their contents (`record`), their charts (`charts`), and the HTML page (`page`)."""
