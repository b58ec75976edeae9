"""Kernels through TileLang, lowered for NVIDIA, AMD and Ascend."""
