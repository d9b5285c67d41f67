"""The only doors to data: specs, argument schemas and evidence, authorisation enforced inside."""
