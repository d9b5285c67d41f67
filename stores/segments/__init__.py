"""Search segments: what a search reads, as immutable arrays derived from the truth.

A segment on disk holds the chunks of a collection as they were when it was built; rows written
later are held in memory, deleted ones are masked. Everything here can be rebuilt.
"""
