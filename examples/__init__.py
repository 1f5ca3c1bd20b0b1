"""Programs that use pyrelay on real data; `make demo` runs `examples.demo`."""
