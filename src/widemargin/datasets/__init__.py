"""Real data sets by name, from a local folder, the user's cache or the public source.

files      which files there are, and where
loading    what is in them
"""

from .loading import Dataset, dataset_is_here, dataset_names, dataset_origin, load_dataset

__all__ = ["Dataset", "dataset_is_here", "dataset_names", "dataset_origin", "load_dataset"]
