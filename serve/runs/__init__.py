"""Runs of questions: on worker threads, followed, finished and cancelled."""
