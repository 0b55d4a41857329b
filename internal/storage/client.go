package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// client makes the calls of S3 that a Bucket needs (Amazon S3 API reference, 2006-03-01). The SDK of AWS finds
// credentials and signs.
type client struct {
	http        *http.Client
	credentials aws.CredentialsProvider // nil: requests are not signed
	signer      *v4.Signer
	region      string
	base        url.URL // of the bucket; its path ends with a slash
	checksums   bool    // uploads carry a CRC-32, which the server keeps
	skew        atomic.Int64
}

// call is one request, which may be sent several times.
type call struct {
	method string
	key    string // "" for the bucket
	query  url.Values
	header http.Header
	body   []byte
}

// replyError is an error that the server answered.
type replyError struct {
	status          int
	code, message   string
	request, method string
	skewed          bool // the clock was wrong, and is set right now
}

func (e *replyError) Error() string {
	text := fmt.Sprintf("%s: the server answered %d %s", e.method, e.status, e.code)
	if e.message != "" {
		text += ": " + e.message
	}
	if e.request != "" {
		text += " (request " + e.request + ")"
	}
	return text
}

// ErrorCode returns the code for retry.RetryableErrorCode.
func (e *replyError) ErrorCode() string { return e.code }

// HTTPStatusCode returns the status for retry.RetryableHTTPStatusCode.
func (e *replyError) HTTPStatusCode() int { return e.status }

// code returns the code of a server's error, "" for another error.
func code(err error) string {
	var reply *replyError
	if errors.As(err, &reply) {
		return reply.code
	}
	return ""
}

// notThere tells whether a server says that it has no such object or bucket.
func notThere(err error) bool {
	switch code(err) {
	case "NoSuchKey", "NoSuchBucket", "NotFound":
		return true
	}
	return false
}

// do sends a request until it succeeds, until again refuses its error, or maxAttempts times. read, if it is not nil,
// takes what the reply's body holds; without it the caller closes the body.
func (c *client) do(ctx context.Context, r call, again func(error) bool, read func(io.Reader) error) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		reply, err := c.send(ctx, r)
		if err == nil && read != nil {
			err = read(reply.Body)
			_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 64<<10)) // so that the connection is used again
			_ = reply.Body.Close()
		}
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil || attempt+1 == maxAttempts || !again(err) {
			return nil, err
		}
		if err := pause(ctx, delay(attempt)); err != nil {
			return nil, err
		}
	}
}

// sentBody is the body of a request. Once it is closed, a transport that still sends it does not read it any more: its
// bytes may change then.
type sentBody struct {
	mu sync.Mutex
	r  *bytes.Reader // nil when it is closed
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.r == nil {
		return 0, io.ErrClosedPipe
	}
	return b.r.Read(p)
}

func (b *sentBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.r = nil
	return nil
}

// none reads a body of which nothing is needed.
func none(io.Reader) error { return nil }

// send makes one attempt at a request.
func (c *client) send(ctx context.Context, r call) (*http.Response, error) {
	u := c.base
	u.Path += r.key
	u.RawPath = httpbinding.EscapePath(u.Path, false)
	u.RawQuery = strings.ReplaceAll(r.query.Encode(), "+", "%20")
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if len(r.body) > 0 {
		body := &sentBody{r: bytes.NewReader(r.body)}
		defer body.Close()
		req.Body, req.ContentLength = body, int64(len(r.body))
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if c.credentials != nil {
		sum := sha256.Sum256(r.body)
		digest := hex.EncodeToString(sum[:])
		req.Header.Set("X-Amz-Content-Sha256", digest)
		key, err := c.credentials.Retrieve(ctx)
		if err != nil {
			return nil, fmt.Errorf("get credentials: %w", err)
		}
		now := time.Now().Add(time.Duration(c.skew.Load()))
		if err := c.signer.SignHTTP(ctx, key, req, digest, "s3", c.region, now); err != nil {
			return nil, fmt.Errorf("sign the request: %w", err)
		}
	}
	reply, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, &smithy.CanceledError{Err: ctx.Err()}
		}
		return nil, &smithyhttp.RequestSendError{Err: err}
	}
	if reply.StatusCode/100 == 2 {
		return reply, nil
	}
	defer reply.Body.Close()
	return nil, c.refused(r.method, reply)
}

// errorBody is the body of a reply that is an error.
type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	RequestID string `xml:"RequestId"`
}

// refused makes an error of a reply. A reply to HEAD, and those of proxies, have no body that says more.
func (c *client) refused(method string, reply *http.Response) error {
	var body errorBody
	_ = xml.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(&body)
	e := &replyError{method: method, status: reply.StatusCode, code: body.Code, message: body.Message, request: body.RequestID}
	if e.code == "" {
		e.code = strings.ReplaceAll(http.StatusText(e.status), " ", "")
	}
	if e.request == "" {
		e.request = reply.Header.Get("X-Amz-Request-Id")
	}
	if e.code == "RequestTimeTooSkewed" {
		if date, err := http.ParseTime(reply.Header.Get("Date")); err == nil {
			now := int64(time.Until(date))
			e.skewed = time.Duration(now-c.skew.Swap(now)).Abs() > time.Minute
		}
	}
	return e
}

// decode reads a reply into a value that has its root element. A server may begin to answer before it knows whether it
// succeeds, so an error may have status 200.
func decode(method string, into any) func(io.Reader) error {
	return func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		var refused errorBody
		if xml.Unmarshal(text, &refused) == nil {
			return &replyError{
				method: method, status: http.StatusInternalServerError,
				code: refused.Code, message: refused.Message, request: refused.RequestID,
			}
		}
		return xml.Unmarshal(text, into)
	}
}

// object describes an object.
type object struct {
	size    int64
	etag    string
	version string // changes when the object is replaced
	attempt string // that wrote it
}

// versionOf returns the ETag of a reply, or, where the server gives none, when the object was written.
func versionOf(reply http.Header) string {
	if etag := reply.Get("Etag"); etag != "" {
		return etag
	}
	written, err := http.ParseTime(reply.Get("Last-Modified"))
	if err != nil {
		return reply.Get("Last-Modified")
	}
	return written.UTC().Format(time.RFC3339Nano)
}

// head describes an object.
func (c *client) head(ctx context.Context, key string) (object, error) {
	reply, err := c.do(ctx, call{method: http.MethodHead, key: key}, retryable, none)
	if err != nil {
		return object{}, err
	}
	return object{
		size: reply.ContentLength, etag: reply.Header.Get("Etag"), version: versionOf(reply.Header),
		attempt: reply.Header.Get(attemptHeader),
	}, nil
}

// get reads bytes [off, end) of an object, and returns the size of the whole and its version. With an ETag it fails where
// the object has another one.
func (c *client) get(ctx context.Context, key, etag string, off, end int64) (body io.ReadCloser, size int64, version string, err error) {
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, end-1)}}
	if etag != "" {
		header.Set("If-Match", etag)
	}
	reply, err := c.do(ctx, call{method: http.MethodGet, key: key, header: header}, retryable, nil)
	if err != nil {
		return nil, 0, "", err
	}
	span := reply.Header.Get("Content-Range") // bytes 0-9/100
	first, rest, _ := strings.Cut(strings.TrimPrefix(span, "bytes "), "-")
	_, whole, _ := strings.Cut(rest, "/")
	size, err = strconv.ParseInt(whole, 10, 64)
	if err != nil || first != strconv.FormatInt(off, 10) {
		_ = reply.Body.Close()
		return nil, 0, "", fmt.Errorf("the server answered %d with Content-Range %q when asked for bytes %d-%d", reply.StatusCode, span, off, end-1)
	}
	return reply.Body, size, versionOf(reply.Header), nil
}

// listed is a page of a list of objects.
type listed struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	Contents []struct {
		Key  string
		Size int64
	}
	IsTruncated           bool
	NextContinuationToken string
}

// list gives a page of at most limit objects whose keys begin with prefix.
func (c *client) list(ctx context.Context, prefix, token string, limit int, again func(error) bool) (page listed, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}, "max-keys": {strconv.Itoa(limit)}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	_, err = c.do(ctx, call{method: http.MethodGet, query: query}, again, func(r io.Reader) error {
		page = listed{}
		return decode(http.MethodGet, &page)(r)
	})
	return page, err
}

// remove deletes an object.
func (c *client) remove(ctx context.Context, key string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, key: key}, retryable, none)
	return err
}

// attemptHeader is the metadata that says which attempt wrote an object.
const attemptHeader = "X-Amz-Meta-Ndls-Attempt"

// described is the header of a new object.
func described(attempt string) http.Header {
	return http.Header{"Content-Type": {"application/octet-stream"}, attemptHeader: {attempt}}
}

// onlyNew lets a request fail where the object exists.
func onlyNew(header http.Header, fresh bool) http.Header {
	if fresh {
		header.Set("If-None-Match", "*")
	}
	return header
}

// checksum is the CRC-32 of a body as S3 writes it, "" where none is wanted.
func (c *client) checksum(body []byte) string {
	if !c.checksums {
		return ""
	}
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
}

const checksumHeader = "X-Amz-Checksum-Crc32"

// put writes an object by one request.
func (c *client) put(ctx context.Context, key, attempt string, body []byte, fresh bool) error {
	header := onlyNew(described(attempt), fresh)
	if sum := c.checksum(body); sum != "" {
		header.Set(checksumHeader, sum)
	}
	_, err := c.do(ctx, call{method: http.MethodPut, key: key, header: header, body: body}, retryable, none)
	return err
}

// upload is an object that is written in parts.
type upload struct {
	client  *client
	key, id string
	parts   []part
}

// part is a part of an upload that the server has.
type part struct {
	XMLName  xml.Name `xml:"Part"`
	Number   int      `xml:"PartNumber"`
	ETag     string
	Checksum string `xml:"ChecksumCRC32,omitempty"`
}

// begin starts an upload.
func (c *client) begin(ctx context.Context, key, attempt string) (*upload, error) {
	header := described(attempt)
	if c.checksums {
		header.Set("X-Amz-Checksum-Algorithm", "CRC32")
	}
	var begun struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		UploadID string   `xml:"UploadId"`
	}
	_, err := c.do(ctx, call{method: http.MethodPost, key: key, query: url.Values{"uploads": {""}}, header: header}, retryable, decode(http.MethodPost, &begun))
	if err != nil {
		return nil, err
	}
	return &upload{client: c, key: key, id: begun.UploadID}, nil
}

// send adds a part to an upload.
func (u *upload) send(ctx context.Context, body []byte) error {
	p := part{Number: len(u.parts) + 1, Checksum: u.client.checksum(body)}
	header := http.Header{}
	if p.Checksum != "" {
		header.Set(checksumHeader, p.Checksum)
	}
	query := url.Values{"partNumber": {strconv.Itoa(p.Number)}, "uploadId": {u.id}}
	reply, err := u.client.do(ctx, call{method: http.MethodPut, key: u.key, query: query, header: header, body: body}, retryable, none)
	if err != nil {
		return err
	}
	p.ETag = reply.Header.Get("Etag")
	u.parts = append(u.parts, p)
	return nil
}

// complete joins the parts of an upload to an object.
func (u *upload) complete(ctx context.Context, fresh bool) error {
	type completeMultipartUpload struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Parts   []part
	}
	body, err := xml.Marshal(completeMultipartUpload{Parts: u.parts})
	if err != nil {
		return err
	}
	header := onlyNew(http.Header{"Content-Type": {"application/xml"}}, fresh)
	var done struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
	}
	_, err = u.client.do(ctx, call{method: http.MethodPost, key: u.key, query: url.Values{"uploadId": {u.id}}, header: header, body: body},
		retryable, decode(http.MethodPost, &done))
	return err
}

// abort removes an upload and asks until the server does not know it: a server that still writes a part of a
// canceled request may keep that part, and with it the upload (S3 API reference, AbortMultipartUpload).
func (u *upload) abort(ctx context.Context) error {
	query := url.Values{"uploadId": {u.id}}
	for wait := firstDelay; ; wait *= 2 {
		_, err := u.client.do(ctx, call{method: http.MethodDelete, key: u.key, query: query}, retryable, none)
		switch {
		case code(err) == "NoSuchUpload":
			return nil
		case err != nil:
			return err
		}
		// An error says that it is gone, or that the server does not let us ask.
		if _, err := u.client.do(ctx, call{method: http.MethodGet, key: u.key, query: query}, retryable, none); err != nil {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// domains of the regions whose names begin so (partitions.json of the SDKs of AWS).
var domains = []struct{ region, domain string }{
	{"cn-", "amazonaws.com.cn"},
	{"us-isob-", "sc2s.sgov.gov"},
	{"us-isof-", "csp.hci.ic.gov"},
	{"us-iso-", "c2s.ic.gov"},
	{"eu-isoe-", "cloud.adc-e.uk"},
	{"eusc-", "amazonaws.eu"},
	{"", "amazonaws.com"},
}

// amazon is the address of S3 in a region.
func amazon(region string, dual, fips bool) *url.URL {
	host := "s3"
	if fips {
		host += "-fips"
	}
	if dual {
		host += ".dualstack"
	}
	for _, d := range domains {
		if strings.HasPrefix(region, d.region) {
			host += "." + region + "." + d.domain
			break
		}
	}
	return &url.URL{Scheme: "https", Host: host}
}

// addressed is the address of a bucket of a server: in the name of the host, unless pathStyle or the names do not
// allow that.
func addressed(server *url.URL, bucket string, pathStyle bool) url.URL {
	u := *server
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/", ""
	if pathStyle || net.ParseIP(u.Hostname()) != nil || !inHost(bucket, u.Scheme == "https") {
		u.Path += bucket + "/"
		return u
	}
	u.Host = bucket + "." + u.Host
	return u
}

// inHost tells whether a bucket's name can be a label of a host. The certificates of servers do not hold for names
// with dots.
func inHost(bucket string, tls bool) bool {
	if len(bucket) < 3 || len(bucket) > 63 || tls && strings.Contains(bucket, ".") {
		return false
	}
	for _, label := range strings.Split(bucket, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}
