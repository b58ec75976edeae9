"""The screens of `plan`."""
