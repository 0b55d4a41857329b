package storage

import (
	"testing"

	"github.com/aws/smithy-go"
)

// TestMomentaryErrorsAreRetried: a call that met another one is made again, one that is refused is not.
func TestMomentaryErrorsAreRetried(t *testing.T) {
	r := newRetryer()
	for code, want := range map[string]bool{"OperationAborted": true, "ConditionalRequestConflict": true, "ExistingObjectIsDirectory": true, "AccessDenied": false, "NoSuchBucket": false} {
		if got := r.IsErrorRetryable(&smithy.GenericAPIError{Code: code}); got != want {
			t.Errorf("%s is retried: %v", code, got)
		}
	}
}
