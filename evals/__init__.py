"""Measure: data sets, metrics, intervals, comparisons of pipelines, and human ratings."""
