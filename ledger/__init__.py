"""The accounts of a run in one DuckDB file: tables, the funnel, balances that must be nought."""
