//go:build !small

package machine

import "time"

// span is the least time for which a loop runs.
const span = 60 * time.Millisecond
