"""What TileLang's Ascend backend allocates."""
