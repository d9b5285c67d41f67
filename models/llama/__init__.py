"""llama.cpp beside Carrel: model files, the server's command line, its supervisor."""
