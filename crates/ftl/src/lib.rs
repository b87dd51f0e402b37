//! The flash translation layer: mapping, placement, garbage collection.
