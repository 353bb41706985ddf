"""The currency every room pays in: findings, evidence, measures, gaps, fixes and reports."""
