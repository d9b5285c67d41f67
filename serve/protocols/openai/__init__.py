"""OpenAI's chat completions and models over the agent."""
