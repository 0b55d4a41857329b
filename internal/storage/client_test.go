package storage

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMomentaryErrorsAreRetried: a call that met another one is made again, one that is refused is not.
func TestMomentaryErrorsAreRetried(t *testing.T) {
	for code, want := range map[string]bool{
		"OperationAborted": true, "ConditionalRequestConflict": true, "ExistingObjectIsDirectory": true, "SlowDown": true,
		"AccessDenied": false, "NoSuchBucket": false, "RequestTimeTooSkewed": false,
	} {
		if got := retryable(&replyError{status: 400, code: code}); got != want {
			t.Errorf("%s is retried: %v", code, got)
		}
	}
	if !retryable(&replyError{status: 403, code: "RequestTimeTooSkewed", skewed: true}) {
		t.Error("a request is not sent with the time of the server")
	}
}

// TestAddresses makes the addresses of buckets, on servers of Amazon and on others.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		server    *url.URL
		bucket    string
		pathStyle bool
		want      string
	}{
		{amazon("eu-central-1", false, false), "graph", false, "https://graph.s3.eu-central-1.amazonaws.com/"},
		{amazon("us-east-1", true, false), "graph", false, "https://graph.s3.dualstack.us-east-1.amazonaws.com/"},
		{amazon("us-gov-west-1", true, true), "graph", true, "https://s3-fips.dualstack.us-gov-west-1.amazonaws.com/graph/"},
		{amazon("cn-north-1", false, false), "graph", false, "https://graph.s3.cn-north-1.amazonaws.com.cn/"},
		{amazon("eu-central-1", false, false), "graph.of.papers", false, "https://s3.eu-central-1.amazonaws.com/graph.of.papers/"},
		{amazon("eu-central-1", false, false), "Graph_1", false, "https://s3.eu-central-1.amazonaws.com/Graph_1/"},
		{&url.URL{Scheme: "http", Host: "127.0.0.1:9000"}, "graph", false, "http://127.0.0.1:9000/graph/"},
		{&url.URL{Scheme: "https", Host: "host:9000", Path: "/s3/"}, "graph", true, "https://host:9000/s3/graph/"},
		{&url.URL{Scheme: "https", Host: "host:9000"}, "graph", false, "https://graph.host:9000/"},
	} {
		if got := addressed(c.server, c.bucket, c.pathStyle); got.String() != c.want {
			t.Errorf("bucket %s of %s is at %s, want %s", c.bucket, c.server, got.String(), c.want)
		}
	}
}

// TestDirectoryBuckets: they need sessions, which the client does not have.
func TestDirectoryBuckets(t *testing.T) {
	_, err := OpenBucket(t.Context(), "s3://graph--use1-az4--x-s3/runs?region=us-east-1")
	if err == nil || !strings.Contains(err.Error(), "use a general purpose bucket") {
		t.Errorf("%v", err)
	}
}

// TestEndpointsOfTheEnvironment: the URI goes before the environment, and that before shared files.
func TestEndpointsOfTheEnvironment(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "config")
	text := "[default]\nregion = eu-west-1\nendpoint_url = http://general\nservices = own\n" +
		"[profile other]\nregion = eu-west-2\nuse_dualstack_endpoint = true\n[services own]\ns3 =\n  endpoint_url = http://shared\n"
	if err := os.WriteFile(shared, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", shared)
	for _, c := range []struct{ query, env, want string }{
		{"", "", "http://graph.shared/ eu-west-1"},
		{"region=us-east-1&use_path_style=true", "", "http://shared/graph/ us-east-1"},
		{"profile=other", "", "https://graph.s3.dualstack.eu-west-2.amazonaws.com/ eu-west-2"},
		{"profile=other&fips=true", "", "https://graph.s3-fips.dualstack.eu-west-2.amazonaws.com/ eu-west-2"},
		{"", "AWS_ENDPOINT_URL=http://env", "http://graph.env/ eu-west-1"},
		{"", "AWS_ENDPOINT_URL_S3=http://own", "http://graph.own/ eu-west-1"},
		{"", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true", "https://graph.s3.eu-west-1.amazonaws.com/ eu-west-1"},
		{"endpoint=https://host:1&hostname_immutable=true", "AWS_ENDPOINT_URL_S3=http://own", "https://host:1/graph/ eu-west-1"},
	} {
		t.Run(c.query+" "+c.env, func(t *testing.T) {
			if name, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, value)
			}
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			b, err := dial(t.Context(), "graph", query)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.base.String() + " " + b.region; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
