"""The accounts: DuckDB tables, the conservation check, the funnel."""
