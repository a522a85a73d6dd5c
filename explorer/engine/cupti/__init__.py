"""DRAM bytes from the GPU's hardware counters, in this process, through the CUPTI torch loads.

What the rest of the engine uses::

    from explorer.engine.cupti.counters import DramCounters, counter_ability
    from explorer.engine.cupti.errors import CounterRefused

    with DramCounters(device_index) as counters:        # CounterRefused: no counters, and why
        reading = counters.measure(run, expected_launches=6)    # one RangeBytes a launch, in order
        total = counters.measure_total(graph.replay)    # one RangeBytes for the whole call
    reading.ranges[0].bytes_read                        # int, DRAM to L2
    reading.ranges[0].bytes_written                     # int, L2 to DRAM
    reading.ranges[0].bytes_requested                   # int | None, what the SMs asked of the L2
    reading.ranges[0].duration_us                       # float | None, of a launch
    reading.passes, reading.set_up_s, reading.run_s     # the pedigree, with .metric_names,
    reading.cache_policy, reading.run_calls             # "none": nothing is flushed in between

    counter_ability(device_index).sentence              # for ``doctor``: how, or why not
    counter_ability(device_index).available

:class:`~explorer.engine.cupti.errors.CounterRefused` has ``sentence`` (one, with the remedy),
``code`` (CUPTI's result or None) and ``call``. It is an ``ExplorerError``.

Rules for callers:

- Warm ``run`` up first; it may be called more than once (see ``run_calls``). Tell ``measure`` how
  many launches to expect when a trace has shown it.
- Copies and fills by the driver (``Memcpy`` and ``Memset`` in a trace) are no launches: they have
  no range, and their bytes are in a total only. A reading has as many ranges as a trace has
  kernels.
- The replay of a CUDA graph shows none of its launches, only ranges of nothing: take its total.
- The counters are exclusive: no ``torch.profiler`` may be recording meanwhile; before and after is
  fine.

Reference:
    CUPTI documentation, "Range Profiling API" and "Host Profiling API"; headers
    ``cupti_range_profiler.h``, ``cupti_profiler_host.h``, ``cupti_profiler_target.h``.
"""
