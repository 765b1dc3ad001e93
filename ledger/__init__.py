"""The accounts of a run in one DuckDB file: tables, the funnel, and the balances that must be nought."""
