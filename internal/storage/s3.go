package storage

import (
	"cmp"
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
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
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

// UploadMemory bounds the heap bytes that one open writer of a Bucket holds: the part on its way and the part being
// filled. Half a part more is there while the buffer of the first one grows.
const UploadMemory = 2*uploadPart + uploadPart/2

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
// The other parameters are profile, role (an ARN), anonymous, dualstack, fips and hostname_immutable. Credentials are
// taken from where the AWS tools look for them, the environment first, never from the URI.
func OpenBucket(ctx context.Context, uri string) (*Bucket, error) {
	name, prefix, query, err := parseBucket(uri)
	if err != nil {
		return nil, err
	}
	shown := strings.TrimSuffix("s3://"+name+"/"+prefix, "/")
	c, err := dial(ctx, name, query)
	if err != nil {
		return nil, fmt.Errorf("storage: open %s: %w%s", shown, err, wayOut(err))
	}
	b := &Bucket{client: c, uri: shown}
	if prefix != "" {
		b.prefix = prefix + "/"
	}
	dials := 0 // that failed
	_, err = c.list(ctx, b.prefix, "", 1, func(err error) bool {
		// What a server that is busy answers is waited for as elsewhere: workers may start while it is.
		var unanswered *net.OpError
		if errors.As(err, &unanswered) && unanswered.Op == "dial" {
			dials++
		}
		return dials < probeAttempts && retryable(err)
	})
	if err != nil {
		c.http.CloseIdleConnections()
		return nil, fmt.Errorf("storage: open %s: %w%s", shown, err, wayOut(err))
	}
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
	if strings.HasSuffix(u.Host, "--x-s3") || strings.HasSuffix(u.Host, "--xa-s3") {
		return "", "", nil, fmt.Errorf("storage: %s is a directory bucket (S3 Express One Zone), which ndls does not read: use a general purpose bucket", u.Host)
	}
	return u.Host, prefix, query, nil
}

// dial makes the client of a bucket. It alone decides which requests are sent again; bodies that break off are resumed
// by the reader.
func dial(ctx context.Context, bucket string, query url.Values) (*client, error) {
	o, err := parseOptions(query)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx, append(o.load, config.WithLogger(logging.Nop{}))...) // errors are returned
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("no region is known")
	}
	if o.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), o.role))
	}
	server, err := o.server(ctx, cfg)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if configured, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = configured.GetTransport() // with AWS_CA_BUNDLE
	}
	transport.ResponseHeaderTimeout = replyTimeout
	transport.DisableCompression = true
	c := &client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		credentials: cfg.Credentials,
		signer:      v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), // S3 escapes once
		region:      cfg.Region,
		base:        addressed(server, bucket, o.pathStyle),
		checksums:   cfg.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired,
	}
	if o.anonymous {
		c.credentials = nil
	}
	return c, nil
}

// options are the parameters of a bucket's URI.
type options struct {
	load                 []func(*config.LoadOptions) error
	endpoint, role       string
	pathStyle, anonymous bool
}

func parseOptions(query url.Values) (o options, err error) {
	var immutable, dual, fips bool
	truth := map[string]*bool{
		"use_path_style": &o.pathStyle, "hostname_immutable": &immutable, "anonymous": &o.anonymous, "dualstack": &dual, "fips": &fips,
	}
	for name, values := range query {
		value := values[0]
		if flag, ok := truth[name]; ok {
			if *flag, err = strconv.ParseBool(value); err != nil {
				return o, fmt.Errorf("%s=%s: it is true or false", name, value)
			}
			continue
		}
		switch name {
		case "region":
			o.load = append(o.load, config.WithRegion(value))
		case "profile":
			o.load = append(o.load, config.WithSharedConfigProfile(value))
		case "endpoint":
			o.endpoint = value
		case "role":
			if !strings.HasPrefix(value, "arn:") {
				return o, fmt.Errorf("role=%s does not begin with “arn:”", value)
			}
			o.role = value
		case "request_checksum_calculation":
			switch strings.ToLower(value) {
			case "when_supported":
				o.load = append(o.load, config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenSupported))
			case "when_required":
				o.load = append(o.load, config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired))
			default:
				return o, fmt.Errorf("%s=%s: it is when_supported or when_required", name, value)
			}
		default:
			return o, fmt.Errorf("unknown parameter %q of the URI", name)
		}
	}
	o.pathStyle = o.pathStyle || immutable && o.endpoint != ""
	if dual {
		o.load = append(o.load, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	}
	if fips {
		o.load = append(o.load, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	if o.anonymous {
		o.load = append(o.load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	return o, nil
}

// server is the address of the server: that of the URI, else that of AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or a shared
// file, else that of Amazon S3 in the region.
func (o options) server(ctx context.Context, cfg aws.Config) (*url.URL, error) {
	endpoint := o.endpoint
	if endpoint == "" {
		endpoint = configured(ctx, cfg)
	}
	if endpoint == "" {
		dual, err := fromSources(cfg, func(s dualSource) (aws.DualStackEndpointState, bool, error) { return s.GetUseDualStackEndpoint(ctx) })
		if err != nil {
			return nil, err
		}
		fips, err := fromSources(cfg, func(s fipsSource) (aws.FIPSEndpointState, bool, error) { return s.GetUseFIPSEndpoint(ctx) })
		if err != nil {
			return nil, err
		}
		return amazon(cfg.Region, dual == aws.DualStackEndpointStateEnabled, fips == aws.FIPSEndpointStateEnabled), nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the endpoint of the server has the form https://host:port")
	}
	return u, nil
}

// configured is the endpoint that the environment or a shared file names, "" if none does.
func configured(ctx context.Context, cfg aws.Config) string {
	general := aws.ToString(cfg.BaseEndpoint)
	if os.Getenv("AWS_ENDPOINT_URL") != "" && os.Getenv("AWS_ENDPOINT_URL_S3") == "" {
		return general
	}
	if ignored, found, err := config.GetIgnoreConfiguredEndpoints(ctx, cfg.ConfigSources); found && err == nil && ignored {
		return general
	}
	own, err := fromSources(cfg, func(s endpointSource) (string, bool, error) { return s.GetServiceBaseEndpoint(ctx, "S3") })
	if err != nil {
		return general
	}
	return cmp.Or(own, general)
}

// The sources of a configuration: options, the environment and shared files.
type (
	endpointSource interface {
		GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
	}
	dualSource interface {
		GetUseDualStackEndpoint(ctx context.Context) (aws.DualStackEndpointState, bool, error)
	}
	fipsSource interface {
		GetUseFIPSEndpoint(ctx context.Context) (aws.FIPSEndpointState, bool, error)
	}
)

// fromSources returns the value of the first source that has one.
func fromSources[S, T any](cfg aws.Config, get func(S) (T, bool, error)) (value T, err error) {
	for _, source := range cfg.ConfigSources {
		if s, ok := source.(S); ok {
			v, found, err := get(s)
			if err != nil || found {
				return v, err
			}
		}
	}
	return value, nil
}

// momentary are errors of calls that met another one. A server that keeps objects as files, such as
// versitygw, answers ExistingObjectIsDirectory also where another call removes the empty folder just then.
var momentary = map[string]struct{}{"ConditionalRequestConflict": {}, "OperationAborted": {}, "ExistingObjectIsDirectory": {}}

// retryable tells which requests are sent again. There is no quota of retries, which would fail a worker's many
// readers together.
func retryable(err error) bool { return retryables.IsErrorRetryable(err) == aws.TrueTernary }

var retryables = append(
	retry.IsErrorRetryables(retry.DefaultRetryables)[:len(retry.DefaultRetryables):len(retry.DefaultRetryables)],
	retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}}},
	retry.RetryableErrorCode{Codes: momentary},
	retry.IsErrorRetryableFunc(brokenReply),
	retry.IsErrorRetryableFunc(clockSet),
)

// brokenReply recognises replies that ended too soon.
func brokenReply(err error) aws.Ternary {
	var syntax *xml.SyntaxError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.As(err, &syntax) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// clockSet recognises requests that were refused for their time, and have another one next time.
func clockSet(err error) aws.Ternary {
	var reply *replyError
	if errors.As(err, &reply) && reply.skewed {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// wayOut returns what a user can do about an error of a server, as the end of a message.
func wayOut(err error) string {
	switch code(err) {
	case "NoSuchBucket":
		return "; make the bucket, or mend the URI"
	case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
		return "; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE in the environment and what they may do in the bucket"
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "; give the bucket's region in the URI: region=..."
	}
	switch text := err.Error(); {
	case strings.Contains(text, "get credentials"):
		return "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, in the environment"
	case strings.Contains(text, "no region is known"):
		return "; give the region in the URI (region=...) or in AWS_REGION"
	case strings.Contains(text, "connection refused"), strings.Contains(text, "no such host"):
		return "; check endpoint=... in the URI and that the server runs"
	}
	return ""
}
