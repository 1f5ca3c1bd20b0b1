"""From untyped Relay and argument types to typed Core: abstract interpretation (`specialise`)."""
