"""The graph of a traced run: nodes, edges, versions of variables."""
