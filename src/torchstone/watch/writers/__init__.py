"""Writers hand the numbers of a run to other tools, one file each."""
