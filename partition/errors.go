package partition

import "ndls/internal/failure"

// badData returns an error about the input, a dataset.ErrData. The text names the row and the remedy.
func badData(format string, args ...any) error { return failure.Of(failure.ErrData, format, args...) }
