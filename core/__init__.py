"""Words of the domain: types, auth, budget, errors, settings, language, trace events."""
