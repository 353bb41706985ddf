"""The way in for agents: a Model Context Protocol server over all the tools."""
