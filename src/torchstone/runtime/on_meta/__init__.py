"""What makes a run on the meta device right: attention, autocast, contents, storages."""
