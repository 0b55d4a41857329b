package failure

import (
	"errors"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"--run s3://b/p?endpoint=http://u:PASSWORD@host&region=r: no", "--run s3://b/p?endpoint=http://…@host&region=r: no"},
		{"s3://b/p?endpoint=http%3A%2F%2Fu%3APASSWORD%40host%3A1&region=r", "s3://b/p?endpoint=http%3A%2F%2F…%40host%3A1&region=r"},
		{"s3://KEY:PASSWORD@b/p", "s3://…@b/p"},
		{"s3://KEY:PASS/WORD@b/p", "s3://…@b/p"},
		{"https://PASSWORD@b/p", "https://…@b/p"},
		{`Get "http://u:PASSWORD@host/b?x=1": dial`, `Get "http://…@host/b?x=1": dial`},
		{"s3://b/p?region=r&secret_access_key=PASSWORD&x=1", "s3://b/p?region=r&secret_access_key=…&x=1"},
		{"s3://b/p?X-Amz-Signature=PASSWORD", "s3://b/p?X-Amz-Signature=…"},
		{"s3://b/p?access_key=PASSWORD;token=PASSWORD next", "s3://b/p?access_key=…;token=… next"},
		// What is no secret stays.
		{"s3://b/mail@example.org/p?region=r", "s3://b/mail@example.org/p?region=r"},
		{"edges:a@b.txt?src=x&dst=y: line 3", "edges:a@b.txt?src=x&dst=y: line 3"},
		{"http://127.0.0.1:8080/ and a@b", "http://127.0.0.1:8080/ and a@b"},
		{"table:a?key=user&tokens=3", "table:a?key=user&tokens=…"},
	} {
		if got := Redact(c.text); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
	if text := Text(errors.New("--run s3://b?endpoint=http://u:PASSWORD@host is wrong")); strings.Contains(text, "PASSWORD") {
		t.Error(text)
	}
}
