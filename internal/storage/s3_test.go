package storage_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

func TestS3Contract(t *testing.T) {
	storagetest.RunRemote(t, emptyStores(startServer(t)))
}

func TestS3ContractThroughFaults(t *testing.T) {
	p, u := storagetest.StartProxy(t, startServer(t), storagetest.Seeded(1))
	t.Run("all", func(t *testing.T) { storagetest.RunRemote(t, emptyStores(u)) })
	for f := storagetest.Pass; f < storagetest.Faults; f++ {
		if p.Counts()[f] == 0 {
			t.Errorf("no request met %s", f)
		}
	}
	t.Logf("%d requests: %v (pass, busy, reset, lost, truncate)", p.Requests(), p.Counts())
}

func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = rng.Read(b)
	return b
}

// TestS3LostReplyOfCreateNew: the server stores the file, the reply is lost, the
// request comes again and is refused because the file is there.
func TestS3LostReplyOfCreateNew(t *testing.T) {
	server := startServer(t)
	for name, size := range map[string]int{"one request": 100, "several parts": 7 << 20} {
		t.Run(name, func(t *testing.T) {
			isLast := func(r *http.Request) bool { return r.Header.Get("If-None-Match") == "*" }
			losses := 0
			p, u := storagetest.StartProxy(t, server, func(r *http.Request) storagetest.Fault {
				if isLast(r) && losses < 2 {
					losses++
					return storagetest.Lost
				}
				return storagetest.Pass
			})
			b := openBucket(t, u, name)
			data := random(size)
			if err := writeNew(b, "f", data); err != nil {
				t.Errorf("the attempt that is there: %v", err)
			}
			if err := writeNew(b, "f", data); !errors.Is(err, storage.ErrExist) {
				t.Errorf("another with the same bytes: %v, want ErrExist", err)
			}
			if p.Counts()[storagetest.Lost] == 0 {
				t.Error("no reply was lost")
			}
			if got := storagetest.Read(t, b, "f"); !bytes.Equal(got, data) {
				t.Error("other bytes come back")
			}
		})
	}
}

func writeNew(s storage.Store, name string, data []byte) error {
	w, err := s.CreateNew(context.Background(), name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, err = w.Commit(context.Background())
	return err
}

// TestS3ReadsResume: every body breaks in its middle, so a read goes on from
// there until little is left.
func TestS3ReadsResume(t *testing.T) {
	server := startServer(t)
	data := random(1 << 20)
	storagetest.Write(t, openBucket(t, server, "p"), "f", data)
	asked := map[string]bool{}
	p, u := storagetest.StartProxy(t, server, func(r *http.Request) storagetest.Fault {
		span := r.Header.Get("Range")
		if r.Method != http.MethodGet || span == "" || asked[span] {
			return storagetest.Pass
		}
		asked[span] = true
		return storagetest.Truncate
	})
	if got := storagetest.Read(t, openBucket(t, u, "p"), "f"); !bytes.Equal(got, data) {
		t.Error("other bytes come back")
	}
	if p.Counts()[storagetest.Truncate] < 5 {
		t.Errorf("%d bodies were cut, want a resumed read to halve what is left each time", p.Counts()[storagetest.Truncate])
	}
}

// TestS3OpenWaitsForABusyServer: a store that throttles as workers start is not
// taken for a wrong address.
func TestS3OpenWaitsForABusyServer(t *testing.T) {
	refused := 0
	_, u := storagetest.StartProxy(t, startServer(t), func(*http.Request) storagetest.Fault {
		if refused < 6 {
			refused++
			return storagetest.Busy
		}
		return storagetest.Pass
	})
	storagetest.Write(t, openBucket(t, u, "p"), "f", []byte("x"))
}

func TestS3RetriesEndWithTheContext(t *testing.T) {
	server := startServer(t)
	var broken atomic.Bool
	p, u := storagetest.StartProxy(t, server, func(*http.Request) storagetest.Fault {
		if broken.Load() {
			return storagetest.Busy
		}
		return storagetest.Pass
	})
	b := openBucket(t, u, "p")
	storagetest.Write(t, b, "f", []byte("x"))
	broken.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	start := time.Now()
	if _, err := b.Stat(ctx, "f"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stat gives %v, want the deadline", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("stat ends after %v, want 1 s", took)
	}
	if p.Counts()[storagetest.Busy] < 2 {
		t.Errorf("%d tries, want more", p.Counts()[storagetest.Busy])
	}
}

// TestS3UploadsAreBounded: what a writer holds in memory is a few parts, and an
// aborted upload leaves none on the server.
func TestS3UploadsAreBounded(t *testing.T) {
	ctx := context.Background()
	server := startServer(t)
	var largest int64
	parts := 0
	_, u := storagetest.StartProxy(t, server, func(r *http.Request) storagetest.Fault {
		if r.URL.Query().Has("partNumber") {
			parts++
			largest = max(largest, r.ContentLength)
		}
		return storagetest.Pass
	})
	b := openBucket(t, u, "p")
	storagetest.Write(t, b, "f", random(16<<20))
	if parts != 4 || largest != 5<<20 {
		t.Errorf("%d parts of at most %d bytes, want 4 of 5 MiB", parts, largest)
	}
	w, err := b.Create(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(random(16 << 20)); err != nil {
		t.Fatal(err)
	}
	unfinished := func() int { return bytes.Count(askServer(t, server, "uploads="), []byte("<Upload>")) }
	if n := unfinished(); n != 1 {
		t.Errorf("%d uploads under way, want 1", n)
	}
	w.Abort()
	if n := unfinished(); n != 0 {
		t.Errorf("%d uploads are left after the abort", n)
	}
}

// askServer returns the server's answer to a question about the bucket.
func askServer(t *testing.T, server *url.URL, query string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.JoinPath(storagetest.Bucket).String()+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(nil)
	digest := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", digest)
	key := aws.Credentials{AccessKeyID: "testkey", SecretAccessKey: storagetest.Secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), key, req, digest, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	reply, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %s", reply.Status, err, body)
	}
	return body
}

// TestS3EndOfContextEndsTheAttempt: nothing appears, whichever context ends.
func TestS3EndOfContextEndsTheAttempt(t *testing.T) {
	b := openBucket(t, startServer(t), "p")
	ctx, cancel := context.WithCancel(context.Background())
	w, err := b.Create(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write(random(6 << 20)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := w.Commit(context.Background()); !errors.Is(err, context.Canceled) {
		t.Errorf("commit gives %v, want context.Canceled", err)
	}
	if infos, err := b.List(context.Background(), ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing", infos, err)
	}
}

func TestS3PrefixIsPartOfTheURI(t *testing.T) {
	server := startServer(t)
	outer, inner := openBucket(t, server, ""), openBucket(t, server, "a/b")
	storagetest.Write(t, inner, "c/f", []byte("x"))
	if got := storagetest.Read(t, outer, "a/b/c/f"); string(got) != "x" {
		t.Errorf("below the bucket: %q", got)
	}
	if inner.URI() != "s3://graph/a/b" || outer.URI() != "s3://graph" {
		t.Errorf("stores are called %s and %s", inner.URI(), outer.URI())
	}
	s, err := storage.OpenURI(context.Background(), storagetest.BucketURI(server, storagetest.Bucket, "a/"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*storage.Bucket).Close()
	if infos, err := s.List(context.Background(), "b/"); err != nil || len(infos) != 1 || infos[0].Name != "b/c/f" {
		t.Errorf("list gives %+v, %v", infos, err)
	}
}

func TestS3OpenTellsWhatIsWrong(t *testing.T) {
	server := startServer(t)
	p, u := storagetest.StartProxy(t, server, func(*http.Request) storagetest.Fault { return storagetest.Pass })
	dead := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	for name, c := range map[string]struct {
		uri      string
		env      map[string]string
		want     string
		requests int
	}{
		"no such bucket":                {uri: storagetest.BucketURI(u, "none", ""), want: "make the bucket", requests: 1},
		"wrong secret":                  {uri: storagetest.BucketURI(u, storagetest.Bucket, ""), env: map[string]string{"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, want: "AWS_SECRET_ACCESS_KEY", requests: 1},
		"unknown key":                   {uri: storagetest.BucketURI(u, storagetest.Bucket, ""), env: map[string]string{"AWS_ACCESS_KEY_ID": "nobody"}, want: "AWS_ACCESS_KEY_ID", requests: 1},
		"no credentials":                {uri: storagetest.BucketURI(u, storagetest.Bucket, ""), env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": t.TempDir()}, want: "set AWS_ACCESS_KEY_ID"},
		"no server":                     {uri: storagetest.BucketURI(dead, storagetest.Bucket, ""), want: "check endpoint"},
		"no region":                     {uri: "s3://graph", want: "region=", env: map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "HOME": t.TempDir()}},
		"secret in the URI":             {uri: "s3://key:" + storagetest.Secret + "@graph/p", want: "in the environment"},
		"secret in a bad URI":           {uri: "s3://key:" + storagetest.Secret + "@graph:port/p", want: "URI of a bucket"},
		"secret in the endpoint":        {uri: "s3://graph/p?endpoint=http://key:" + storagetest.Secret + "@host", want: "in the environment"},
		"secret in an escaped endpoint": {uri: "s3://graph/p?endpoint=http%3A%2F%2Fkey%3A" + storagetest.Secret + "%40host", want: "in the environment"},
		"secret with a slash":           {uri: "s3://key:" + storagetest.Secret + "/x@graph/p", want: "URI of a bucket"},
		"unknown parameter":             {uri: "s3://graph/p?secret=" + storagetest.Secret, want: "secret"},
		"path style of maybe":           {uri: "s3://graph/p?use_path_style=maybe", want: "true or false"},
		"no bucket":                     {uri: "s3:///p", want: "s3://bucket/prefix"},
		"prefix leaves":                 {uri: "s3://graph/a/../../p", want: "s3://bucket/prefix"},
		"scheme of another":             {uri: "gs://graph/p", want: "gs"},
		"scheme without slash":          {uri: "file:///tmp", want: "file"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			before := p.Requests()
			s, err := storage.OpenURI(context.Background(), c.uri)
			if err == nil {
				t.Fatalf("%s opens", s.URI())
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), storagetest.Secret) || strings.Contains(err.Error(), "not-the-secret") {
				t.Errorf("error is %q, want %q and no secret in it", err, c.want)
			}
			if got := p.Requests() - before; c.requests > 0 && got != c.requests {
				t.Errorf("%d requests, want %d", got, c.requests)
			}
		})
	}
}

func TestOpenURIOfAFolder(t *testing.T) {
	dir := t.TempDir() + "/run"
	s, err := storage.OpenURI(context.Background(), dir)
	if err != nil || s.URI() != dir {
		t.Fatalf("%v, %v", s, err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
