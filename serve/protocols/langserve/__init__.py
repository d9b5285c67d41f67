"""The HTTP convention of LangServe over the agent."""
