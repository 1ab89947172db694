"""Programs that are copied into exported tasks as they are; standard library only."""
