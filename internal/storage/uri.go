package storage

import (
	"context"
	"fmt"
	"strings"
)

// OpenURI opens the store that a folder's path or an s3:// URI names; see
// [OpenBucket] for the form of the latter. A folder is made if it is missing.
func OpenURI(ctx context.Context, uri string) (Store, error) {
	scheme, _, remote := strings.Cut(uri, "://")
	switch {
	case !remote:
		return NewLocal(uri)
	case scheme == "s3":
		return OpenBucket(ctx, uri)
	}
	return nil, fmt.Errorf("storage: no store has scheme %q; give a folder or s3://bucket/prefix", scheme)
}
