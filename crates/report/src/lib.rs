//! One self-contained HTML file with plots, from run records.
