// expect: E0609
memory_stats().bytes_used
