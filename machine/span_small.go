//go:build small

package machine

import "time"

// span is the least time for which a loop runs. Tests start many workers, each of which measures.
const span = 3 * time.Millisecond
