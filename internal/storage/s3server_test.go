package storage_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

// startServer runs an S3 server until the test ends, and returns its address. The
// credentials are in the environment.
func startServer(t *testing.T) *url.URL {
	t.Helper()
	s := storagetest.StartServer(t)
	for _, variable := range s.Environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return s.URL
}

func openBucket(t *testing.T, server *url.URL, prefix string) *storage.Bucket {
	t.Helper()
	b, err := storage.OpenBucket(context.Background(), storagetest.BucketURI(server, storagetest.Bucket, prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// emptyStores returns a function that opens another prefix at each call.
func emptyStores(server *url.URL) func(t *testing.T) storage.Store {
	var n atomic.Int64
	return func(t *testing.T) storage.Store {
		return openBucket(t, server, fmt.Sprintf("runs/%d", n.Add(1)))
	}
}
