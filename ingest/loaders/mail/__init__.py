"""E-mail: messages, mailboxes and what is attached to them."""
