package storage

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

const (
	// maxAttempts bounds the tries of one request, and of one range of a file
	// without a byte of progress. With the delays below they wait 50 s on
	// average and 105 s at most, which a server needs to restart or to stop
	// throttling.
	maxAttempts = 14
	// firstDelay bounds the first pause: about the time of one request, so that
	// a connection that broke costs little.
	firstDelay = 50 * time.Millisecond
	// maxDelay bounds every pause, so that a store that is back is noticed.
	maxDelay = 20 * time.Second
	// probeAttempts are tried where nobody answers when a store is opened: a
	// wrong address should be told at once.
	probeAttempts = 5
	// replyTimeout bounds the wait for the head of a reply after the request
	// went out; joining the parts of a large upload takes a while.
	replyTimeout = 2 * time.Minute
	// abortTimeout bounds the clearing up after a failed upload.
	abortTimeout = 10 * time.Second

	// uploadPart is the size of a part of an upload, the least that S3 accepts: a writer holds
	// parts in memory.
	uploadPart = 5 << 20
	// maxUpload is the size of the largest file: S3 takes 10 000 parts.
	maxUpload = 10_000 * uploadPart
)

// UploadMemory bounds the heap bytes that one open writer of a Bucket holds: two
// parts, and the first one, whose buffer grows by quarters.
const UploadMemory = 2*uploadPart + uploadPart*3/2

// delay is the pause before the try after attempt, counted from 0: random below
// a bound that doubles, so that many clients do not come back together.
func delay(attempt int) time.Duration {
	bound := maxDelay
	if attempt < 16 {
		bound = min(maxDelay, firstDelay<<attempt)
	}
	return rand.N(bound)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// OpenBucket opens the files below a prefix of a bucket that exists:
//
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket/prefix?endpoint=https://host:port&region=us-east-1&use_path_style=true
//
// The other parameters belong to gocloud.dev/aws. Credentials are taken from
// where the AWS tools look for them, the environment first, never from the URI.
func OpenBucket(ctx context.Context, uri string) (*Bucket, error) {
	name, prefix, query, err := parseBucket(uri)
	if err != nil {
		return nil, err
	}
	shown := strings.TrimSuffix("s3://"+name+"/"+prefix, "/")
	client, transport, err := dial(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("storage: open %s: %w", shown, err)
	}
	_, err = client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, Prefix: &prefix, MaxKeys: aws.Int32(1)},
		func(o *s3.Options) { o.Retryer = &probe{RetryerV2: newRetryer()} })
	if err != nil {
		transport.CloseIdleConnections()
		return nil, fmt.Errorf("storage: open %s: %w%s", shown, err, wayOut(err))
	}
	opened, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, fmt.Errorf("storage: open %s: %w", shown, err)
	}
	if prefix != "" {
		opened = blob.PrefixedBucket(opened, prefix+"/")
	}
	b := NewBucket(opened, shown)
	b.transport = transport
	return b, nil
}

// parseBucket takes an s3:// URI apart. Its errors do not show the URI, which
// may hold a secret where none belongs.
func parseBucket(uri string) (name, prefix string, query url.Values, err error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", "", nil, errors.New("storage: the URI of a bucket has the form s3://bucket/prefix?region=R; this one is no URI")
	}
	query = u.Query()
	if u.User != nil || strings.Contains(query.Get("endpoint"), "@") {
		return "", "", nil, errors.New("storage: the URI of a bucket holds credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment and take them out of the URI")
	}
	prefix = strings.Trim(u.Path, "/")
	if u.Scheme != "s3" || u.Host == "" || prefix != "" && !fs.ValidPath(prefix) {
		return "", "", nil, errors.New("storage: the URI of a bucket has the form s3://bucket/prefix?region=R")
	}
	return u.Host, prefix, query, nil
}

// dial makes the client of a bucket's server. Its retryer is the one place that
// decides which requests are sent again; bodies that break off are resumed by
// the reader.
func dial(ctx context.Context, query url.Values) (*s3.Client, *http.Transport, error) {
	pathStyle := false
	if v := query.Get("use_path_style"); v != "" {
		var err error
		if pathStyle, err = strconv.ParseBool(v); err != nil {
			return nil, nil, fmt.Errorf("use_path_style=%s: it is true or false", v)
		}
	}
	query.Del("use_path_style")
	cfg, err := gcaws.V2ConfigFromURLParams(ctx, query)
	if err != nil {
		return nil, nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if configured, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = configured.GetTransport() // with AWS_CA_BUNDLE
	}
	transport.ResponseHeaderTimeout = replyTimeout
	cfg.HTTPClient = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	cfg.Retryer = func() aws.Retryer { return newRetryer() }
	cfg.Logger = logging.Nop{} // errors are returned
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = pathStyle
		// Ranges have no checksum to compare; their reader knows what to expect.
		o.DisableLogOutputChecksumValidationSkipped = true
	}), transport, nil
}

// probe is the retryer of the first request to a server.
type probe struct {
	aws.RetryerV2
	dials int // that failed
}

// IsErrorRetryable is true for what a server that is busy answers as often as
// elsewhere: workers may start while it is.
func (p *probe) IsErrorRetryable(err error) bool {
	var unanswered *net.OpError
	if errors.As(err, &unanswered) && unanswered.Op == "dial" {
		p.dials++
	}
	return p.dials < probeAttempts && p.RetryerV2.IsErrorRetryable(err)
}

// momentary are errors of calls that met another one. A server that keeps objects as files, such as
// versitygw, answers ExistingObjectIsDirectory also where another call removes the empty folder just then.
var momentary = map[string]struct{}{"ConditionalRequestConflict": {}, "OperationAborted": {}, "ExistingObjectIsDirectory": {}}

func newRetryer() aws.RetryerV2 {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = maxAttempts, maxDelay
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return delay(attempt), nil })
		// A quota of retries would fail a worker's many readers together.
		o.RateLimiter = ratelimit.None
		o.Retryables = append(
			o.Retryables,
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}},
			retry.RetryableErrorCode{Codes: momentary},
			retry.IsErrorRetryableFunc(brokenReply),
		)
	})
}

// brokenReply recognises replies that ended too soon.
func brokenReply(err error) aws.Ternary {
	var syntax *xml.SyntaxError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &syntax) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// boundUpload is a hook of blob.WriterOptions. Left alone the transfer manager
// gathers 16 MiB before the first part, holds six parts of 8 MiB, and leaves the
// parts of an aborted upload on the server.
func boundUpload(client *s3.Client) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var uploads *transfermanager.Client
		if as(&uploads) {
			*uploads = *transfermanager.New(uploadClient{client}, func(o *transfermanager.Options) {
				o.PartSizeBytes, o.MultipartUploadThreshold = uploadPart, uploadPart
				o.Concurrency = 1
				o.FailTimeout = abortTimeout
				o.RequestChecksumCalculation = client.Options().RequestChecksumCalculation
			})
		}
		return nil
	}
}

// uploadClient is a client whose aborted uploads are gone.
type uploadClient struct{ *s3.Client }

// AbortMultipartUpload aborts until the server does not know the upload: a server
// that still writes a part of a canceled request may keep that part, and with it
// the upload (S3 API reference, AbortMultipartUpload). ctx bounds the attempts.
func (c uploadClient) AbortMultipartUpload(
	ctx context.Context, in *s3.AbortMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.AbortMultipartUploadOutput, error) {
	for pause := firstDelay; ; pause *= 2 {
		out, err := c.Client.AbortMultipartUpload(ctx, in, opts...)
		switch {
		case gone(err):
			return &s3.AbortMultipartUploadOutput{}, nil
		case err != nil:
			return nil, err
		}
		// An error says that it is gone, or that the server does not let us ask.
		if _, err := c.ListParts(ctx, &s3.ListPartsInput{Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId}, opts...); err != nil {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// gone tells whether a server says that it knows no such upload.
func gone(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "NoSuchUpload"
}

// wayOut returns what a user can do about an error of a server, as the end of a message.
func wayOut(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NoSuchBucket":
			return "; make the bucket, or mend the URI"
		case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
			return "; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE in the environment and what they may do in the bucket"
		case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
			return "; give the bucket's region in the URI: region=..."
		}
	}
	switch text := err.Error(); {
	case strings.Contains(text, "get credentials"):
		return "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, in the environment"
	case strings.Contains(text, "resolve endpoint"):
		return "; give the region in the URI (region=...) or in AWS_REGION"
	case strings.Contains(text, "connection refused"), strings.Contains(text, "no such host"):
		return "; check endpoint=... in the URI and that the server runs"
	}
	return ""
}
