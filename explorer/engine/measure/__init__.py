"""Everything that is measured of a call: times, memory, bytes, errors."""
