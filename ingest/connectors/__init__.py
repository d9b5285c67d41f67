"""What sources of documents list and hand over: folders, the web, Git, mail, stores, loaders."""
